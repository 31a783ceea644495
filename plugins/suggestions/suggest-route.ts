/** The route that suggests policies based on what people approved. */
import { Type, type Static } from "@sinclair/typebox";
import {
  closed,
  type CoreHost,
  countSchema,
  orNull,
  parseRfc3339,
  siblingModule,
  textSchema,
  timeSchema,
} from "../../src/core.ts";
import { defineRoute, Refusal, toRfc3339 } from "../../src/plugin.ts";
import { readPastDecisions } from "./mining/past-decisions.ts";
import type { PastDecisionQuery, SuggestionReport } from "./mining/report.ts";

const DAY = 86_400_000;
const DEFAULT_DAYS = 90;
/** Maximum number of decisions that one request reads. */
const MAX_DECISIONS = 20_000;
const WORK = siblingModule(import.meta.url, "mining/suggest-policies");

const SuggestBody = Type.Object(
  {
    since: Type.Optional(
      Type.String({
        format: "date-time",
        description: `Start of the range. Default: ${DEFAULT_DAYS} days before now.`,
      }),
    ),
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: MAX_DECISIONS,
        description: `Maximum number of decisions that are read, newest first. Default: ${MAX_DECISIONS}.`,
      }),
    ),
    min_approvals: Type.Optional(
      Type.Integer({
        minimum: 4,
        maximum: 1000,
        description:
          "Minimum number of approvals that support a rule. At most half of this number can come from one agent, or from one key that is bound to no agent. Default: 20.",
      }),
    ),
    min_people: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 20,
        description: "Minimum number of different people who approved. Default: 2.",
      }),
    ),
    min_days: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 90,
        description: "Minimum number of different days with approvals. Default: 3.",
      }),
    ),
  },
  { ...closed, examples: [{ min_days: 5 }] },
);
type SuggestBody = Static<typeof SuggestBody>;

const Example = { action_id: Type.String(), at: timeSchema("When it was submitted."), agent_id: Type.String() };

const Evidence = Type.Object(
  {
    approvals: countSchema("Approvals that the rule covers."),
    counted: countSchema(
      "Approvals that count: without a vote within three seconds, and at most half of `min_approvals` for each agent.",
    ),
    weak: countSchema(
      "Approvals with a vote within three seconds, of the person's own action, or in an emergency. They do not count.",
    ),
    people: countSchema("People behind the approvals that count."),
    approvers: Type.Array(Type.String(), { description: "Principals of these people, at most 20." }),
    agents: countSchema("Agents that submitted the approved actions."),
    days: countSchema("Different days on which the approved actions were submitted."),
    first_at: timeSchema("Time of the first of these approvals."),
    last_at: timeSchema("Time of the last of these approvals."),
    median_vote_ms: countSchema("Median time of a vote, from the request or from the same approver's previous vote."),
    outcomes: Type.Object(
      {
        succeeded: countSchema("Succeeded."),
        failed: countSchema("Failed."),
        unknown: countSchema("Unknown."),
        not_run: countSchema("Not run."),
      },
      { description: "How the approved actions ended.", ...closed },
    ),
    nearest_rejections: Type.Array(
      Type.Object(
        {
          ...Example,
          failed: Type.Array(Type.String(), { description: "What the rule does not cover, such as `amount is 25`." }),
        },
        closed,
      ),
      { description: "Rejected requests that miss the fewest conditions." },
    ),
    rejections: countSchema("Rejected requests with the same tool and operation."),
    rejection_bound: Type.Object(
      {
        trials: countSchema("Approvals that count, without the cap for each agent."),
        rejections: countSchema("Number of these requests that were rejected, which is always 0."),
        confidence: Type.Number(),
        upper: Type.Number({ description: "Upper bound of the rejection rate (Clopper-Pearson, one-sided)." }),
      },
      closed,
    ),
    newly_allows: Type.Object(
      {
        unanswered: countSchema("Requests that no person answered."),
        approved: countSchema("Other approved requests."),
        examples: Type.Array(Type.Object(Example, closed)),
      },
      { description: "Other requests of the range that the rule would allow.", ...closed },
    ),
    open_members: Type.Array(Type.String(), {
      description: "Members, such as `params.amount`, for which the rule allows values that no one has approved.",
    }),
    backtest: Type.Object(
      {
        evaluated: countSchema("Decisions of the range."),
        flipped: countSchema("Decisions that the rule would change to `allow`."),
      },
      { description: "Every decision of the range, decided again with the rule.", ...closed },
    ),
  },
  closed,
);

const Suggestion = Type.Object(
  {
    policy: textSchema("Name of the policy: a digest of the rule."),
    stored: Type.Boolean({ description: "Whether a policy with this name is stored." }),
    in_place_of: Type.Object(
      { policy: Type.String(), rule: Type.String() },
      { description: "The rule that requires approval.", ...closed },
    ),
    tool: Type.String(),
    operation: Type.String(),
    agents: Type.Array(Type.String()),
    when: textSchema("Condition in CEL."),
    conditions: Type.Array(
      Type.Object(
        {
          kind: Type.String(),
          member: orNull(Type.String()),
          text: textSchema("In CEL."),
          words: textSchema("For people, such as `amount is from 5 to 20`."),
        },
        closed,
      ),
      { description: "Parts of the condition." },
    ),
    yaml: textSchema("The policy in shadow mode."),
    tests: textSchema("Tests made from real actions, for the folder of the policies."),
    evidence: Evidence,
  },
  { title: "Suggestion", ...closed },
);

const Suggestions = Type.Object(
  {
    since: timeSchema("Start of the range."),
    suggestions: Type.Array(Suggestion, { description: "The shortest first." }),
    read: countSchema("Decisions that were read."),
    skipped: countSchema("Decisions whose request was erased, altered or larger than 16,384 characters."),
    groups: countSchema("Number of combinations of rule, tool and operation with approvals."),
    disqualified: countSchema(
      "Rules that were discarded: they would have allowed a rejected request, or the requests that they would have allowed lack the minimum evidence.",
    ),
    truncated: Type.Boolean({ description: "Whether the range has older decisions that were not read." }),
  },
  { title: "Suggestions", ...closed },
);

export function suggestRoute(host: CoreHost, tag: string) {
  return defineRoute({
    method: "POST",
    path: "/v1/policies/suggest",
    tag,
    summary: "Suggest policies from approvals",
    description:
      "Proposes rules that would have allowed what people approved, each with its evidence. Stores nothing: send `yaml` to POST /v1/policies to make a suggestion a candidate. Needs a key that may read all actions.",
    scope: "policies:write",
    body: SuggestBody,
    responses: { 200: { description: "The suggestions.", schema: Suggestions } },
    errors: ["INVALID_RANGE", "TOO_MANY_TRIALS", "TRIAL_TOO_LONG", "TRIAL_LOST"],
    async handle({ body, credential, signal }) {
      // A credential that sees only some actions would miss rejections of the others.
      if (!("all" in credential.visibility) || !credential.hasScope("actions:read"))
        throw new Refusal(
          "INSUFFICIENT_SCOPE",
          `suggestions are computed from all actions; the key "${credential.key.name}" needs the scope actions:read for all of them`,
        );
      const range = rangeOf(body, host.clock());
      const { compiled } = await host.policies.current();
      const read = (query: PastDecisionQuery) => readPastDecisions(host, query);
      const job = { module: WORK, input: range, read };
      const report: SuggestionReport = await host.policies.trials.run([compiled], job, signal);
      const stored = new Set(
        (await host.storage.policies()).filter(({ deleted_at }) => deleted_at === null).map(({ name }) => name),
      );
      const suggestions = report.suggestions.map((each) => ({ ...each, stored: stored.has(each.policy) }));
      return { status: 200, json: { ...report, since: toRfc3339(range.since), suggestions } };
    },
  });
}

function rangeOf({ since: start, limit = MAX_DECISIONS, ...bar }: SuggestBody, now: number) {
  // Include decisions of the current millisecond.
  const until = now + 1;
  const since = (start === undefined ? null : parseRfc3339(start)) ?? until - DEFAULT_DAYS * DAY;
  if (since >= until)
    throw new Refusal("INVALID_RANGE", `since (${toRfc3339(since)}) must be in the past`, {
      errors: [{ pointer: "/since", detail: "a time in the past" }],
    });
  const { min_approvals = 20, min_people = 2, min_days = 3 } = bar;
  return { since, until, limit, min_approvals, min_people, min_days };
}
