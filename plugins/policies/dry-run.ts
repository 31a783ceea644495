/** Route that evaluates sample actions with candidate policies. */
import { Type, type Static } from "@sinclair/typebox";
import {
  type CoreHost,
  type Decision,
  GivenAgent,
  GivenFacts,
  GivenPrincipal,
  givenRequesterFacts,
  type JsonObject,
  orNull,
  parseRfc3339,
} from "../../src/core.ts";
import { defineRoute, type Reply } from "../../src/plugin.ts";
import { EnforceField, parseCandidates } from "./candidates.ts";
import { EXAMPLE_DEFINITION } from "./schemas.ts";

const SampleAction = Type.Object(
  {
    agent_id: Type.String({ minLength: 1, maxLength: 256 }),
    tool: Type.String({ minLength: 1, maxLength: 256 }),
    operation: Type.String({ minLength: 1, maxLength: 256 }),
    params: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
    context: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
  },
  { additionalProperties: false },
);

const DryRunBody = Type.Object(
  {
    policy: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), {
        description: "The candidate as JSON, with the members that it has in YAML.",
      }),
    ),
    yaml: Type.Optional(Type.String({ description: "The candidates as YAML instead; one or more documents." })),
    actions: Type.Array(SampleAction, { minItems: 1, maxItems: 100 }),
    alone: Type.Optional(
      Type.Boolean({
        description:
          "Decides with the candidates only. Otherwise they replace the active policies of the same names, or are added to them.",
      }),
    ),
    enforce: EnforceField,
    now: Type.Optional(Type.String({ format: "date-time", description: "Time to decide at. Default: now." })),
    principal: Type.Optional(GivenPrincipal),
    agent: Type.Optional(GivenAgent),
    facts: Type.Optional(GivenFacts),
  },
  {
    additionalProperties: false,
    examples: [
      {
        policy: EXAMPLE_DEFINITION,
        actions: [{ agent_id: "support-bot", tool: "stripe", operation: "refund", params: { amount: 120 } }],
      },
    ],
  },
);
type DryRunBody = Static<typeof DryRunBody>;

const DecisionRecord = Type.Record(Type.String(), Type.Unknown());
const DECISION = {
  effect: "allow",
  reason: 'allowed by rule "small refunds" of policy "refunds"',
  reason_code: "POLICY_RULE",
  risk_level: null,
  policy: "refunds",
  policy_version: 2,
  rule: "small refunds",
  approval: null,
  shadow: [],
};

const DryRun = Type.Object(
  {
    policy_set: orNull(Type.String({ description: "Digest of the set that includes the candidates." })),
    results: Type.Array(
      Type.Object(
        {
          current: DecisionRecord,
          candidate: DecisionRecord,
          overruled: Type.Boolean({
            description: "Whether the candidates alone would decide less strictly: another policy overrules them.",
          }),
          changed: Type.Boolean({ description: "Whether the effect or the requirements of the approval differ." }),
        },
        { additionalProperties: false },
      ),
    ),
  },
  {
    additionalProperties: false,
    examples: [
      {
        policy_set: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        results: [{ current: DECISION, candidate: DECISION, overruled: false, changed: false }],
      },
    ],
  },
);

export function dryRunRoute(host: CoreHost, tag: string, bodyLimit: number) {
  return defineRoute({
    method: "POST",
    path: "/v1/policies/dry-run",
    tag,
    summary: "Preview candidate policies",
    scope: "policies:read",
    body: DryRunBody,
    bodyLimit,
    description:
      "Evaluates sample actions with the active set, and with the active set plus the candidates. A candidate replaces the active policy of the same name. With `alone`, the second set contains only the candidates. Records nothing, ignores registered agents and reads no fact sources.",
    responses: { 200: { description: "Both decisions of each action.", schema: DryRun } },
    errors: ["POLICY_INVALID", "TOO_MANY_TRIALS", "TRIAL_TOO_LONG", "TRIAL_LOST"],
    handle: ({ body, signal }) => dryRun(host, body, signal),
  });
}

/**
 * Evaluates the sample actions under the active set, and under the active set with the candidates added or replaced
 * (with `alone`, under the candidates only). Records nothing.
 */
async function dryRun(host: CoreHost, body: DryRunBody, signal: AbortSignal): Promise<Reply> {
  const { compiled: active } = await host.policies.current();
  const { trials } = host.policies;
  const candidates = parseCandidates(body);
  const candidate = await trials.withCandidates(active, candidates, body.alone === true, signal);
  const alone = body.alone === true ? candidate : await trials.withCandidates(active, candidates, true, signal);
  const now = (body.now === undefined ? null : parseRfc3339(body.now)) ?? host.clock();
  const facts = givenRequesterFacts(body);
  const cases = body.actions.map((action) => ({
    request: {
      ...action,
      params: (action.params ?? {}) as JsonObject,
      context: (action.context ?? {}) as JsonObject,
    },
    facts,
    now,
    given: body.facts ?? {},
  }));
  const [before = [], after = [], own = []] = await trials.decide([active, candidate, alone], cases, signal);
  const results = before.map((current, i) => {
    const decided = after[i] as Decision;
    const overruled = own[i]?.reason_code === "POLICY_RULE" && own[i]?.effect !== decided.effect;
    return { current, candidate: decided, overruled, changed: outcomeOf(current) !== outcomeOf(decided) };
  });
  return { status: 200, json: { policy_set: candidate.digest, results } };
}

function outcomeOf({ effect, approval }: Decision): string {
  return JSON.stringify([
    effect,
    approval?.quorum,
    approval?.expires_in_ms,
    approval?.valid_for_ms,
    approval?.rejection_holds_ms,
    approval?.grants,
    approval?.notify,
  ]);
}
