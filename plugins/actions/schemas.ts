import { type Static, type TBoolean, type TOptional, type TUnknown, Type } from "@sinclair/typebox";
import {
  type CoreHost,
  ACTION_STATUSES,
  orNull,
  REVIEW_ANSWERS,
  REVIEWER_FAILURES,
  timeSchema,
} from "../../src/core.ts";
import { PAGE_QUERY } from "../../src/plugin.ts";
import { ApproverPlans, EditableParameter } from "./entry-parts.ts";
import { LedgerEntry } from "./entry-schemas.ts";
import { DENIAL_RESPONSE_FIELDS } from "./rejection-schemas.ts";
import { MAX_COMPARED_ACTIONS, MAX_DIFFERENCES, MAX_UNUSUAL_SENTENCES } from "./unusual.ts";

/** Maximum number of questions about one action. Each question and each answer adds an entry to the ledger. */
export const MAX_QUESTIONS = 5;
/** Maximum number of characters of a question. */

/** Names are compared, displayed and logged, so the format `name` excludes invisible and ambiguous characters. */
const Name = (description: string) => Type.String({ minLength: 1, maxLength: 256, format: "name", description });
const Json = Type.Record(Type.String(), Type.Unknown());

/** Header that carries the token of the agent's session. */
export const SESSION_HEADER = "Assent-Session";

export const ActionBody = Type.Object(
  {
    agent_id: Name("Agent that requests the action. A key that is bound to an agent can name only that agent."),
    tool: Name("Tool to use, e.g. `stripe`."),
    operation: Name("Operation of the tool, e.g. `refund`."),
    params: Type.Optional(Type.Record(Type.String(), Type.Unknown(), { description: "Arguments of the tool." })),
    context: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), {
        description:
          "The reason for the action and whom it is for: ticket, user, environment. Policies can use it, and the request hash covers it.",
      }),
    ),
    meta: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), {
        description:
          "Stored and displayed with the request, up to 4,096 bytes: trace, session, host, tool call. Policies cannot use it, and the request hash does not cover it.",
      }),
    ),
    authority: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 64,
        description:
          "The authority under which the agent acts for another agent (`POST /v1/authorities`). The action is allowed only if the policies also allow it for each agent that gave the authority, and it is within what they gave.",
      }),
    ),
  },
  {
    additionalProperties: false,
    examples: [
      {
        agent_id: "support-bot",
        tool: "stripe",
        operation: "refund",
        params: { amount: 120, currency: "USD" },
        context: { ticket: "T-1001" },
        meta: { session: "s-7f3a" },
      },
    ],
  },
);
export type ActionBody = Static<typeof ActionBody>;

export const ApprovalBody = Type.Object(
  {
    token: Type.String({
      minLength: 1,
      maxLength: 4096,
      description: "The action's `approval_token`, as returned to this credential.",
    }),
    approve: Type.Boolean({ description: "true approves; false rejects." }),
    reason: Type.Optional(Type.String({ maxLength: 2000, description: "Recorded in the ledger." })),
  },
  { additionalProperties: false },
);

/** What plugins add to votes. */
export type VoteFeatures = Pick<CoreHost, "voteAddition" | "soleApproval">;

export const approvalBody = (features: VoteFeatures) =>
  Type.Object({ ...ApprovalBody.properties, ...voteMembers(features) }, { additionalProperties: false });

/** Returns the members of votes that plugins read: `break_glass` and `grant`. */
export function voteMembers({ voteAddition, soleApproval }: VoteFeatures) {
  const members = {
    ...(soleApproval === null ? {} : { break_glass: Type.Optional(soleApproval.body) }),
    ...(voteAddition === null ? {} : { grant: Type.Optional(voteAddition.body) }),
  };
  return members as unknown as { break_glass: TOptional<TBoolean>; grant: TOptional<TUnknown> };
}

const Attempt = (description: string) =>
  Type.Optional(Type.String({ pattern: "^[A-Za-z0-9._~-]{16,64}$", description, examples: ["run-7f3a91c2d4e8b605"] }));

export const StartBody = Type.Object(
  {
    permit: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 8192,
        description: "Permit of this action. The key that submitted the action needs none.",
      }),
    ),
    request_hash: Type.Optional(
      Type.String({
        pattern: "^[0-9a-f]{64}$",
        description:
          "`request_hash` of the record that the caller is about to run. Required if an approver or the policies changed the request, so that no caller runs the proposed parameters.",
      }),
    ),
    inspects: Type.Optional(
      Type.Boolean({
        description:
          "Whether the caller sends the output to `POST /v1/actions/{id}/inspect` before the agent gets it, if the record has `inspect`. Otherwise the session gets the labels of all result rules that apply to the action when it starts. Default: false.",
      }),
    ),
    attempt: Attempt(
      "Random string for this start. If the response is lost, repeat the start with the same `attempt`. The repeated start gets the same response while the action may still start.",
    ),
  },
  { additionalProperties: false },
);
export type StartBody = Static<typeof StartBody>;

export const PermitBody = Type.Object({}, { additionalProperties: false });

export const ResultBody = Type.Object(
  {
    success: Type.Boolean(),
    error: Type.Optional(orNull(Type.String({ maxLength: 10_000, description: "What went wrong." }))),
    meta: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), { description: "Details of the result: ids, amounts, durations." }),
    ),
    usage: Type.Optional(
      Type.Record(
        Type.String({ pattern: "^[a-z][a-z0-9_]{0,31}$" }),
        Type.Number({ minimum: 0, maximum: 1_000_000_000 }),
        {
          maxProperties: 16,
          additionalProperties: false,
          description:
            "Amounts that the action used, such as `cost_usd`, `tokens` or `seconds`, for limits with `sum: usage.NAME`. Recorded in the ledger, where they stay. An amount that is not reported counts as the limit's `reserve`.",
        },
      ),
    ),
    attempt: Attempt(
      "`attempt` of the start that this result belongs to. The result is rejected if another start, even by the same key, started the action.",
    ),
  },
  { additionalProperties: false },
);
export type ResultBody = Static<typeof ResultBody>;

export const SettleBody = Type.Object(
  {
    success: Type.Boolean({ description: "Whether the action had its effect." }),
    reason: Type.String({
      minLength: 1,
      maxLength: 2000,
      description: "How this is known. Recorded in the ledger, where it stays after an erasure.",
    }),
    meta: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), { description: "Details of the result: ids, amounts, durations." }),
    ),
  },
  { additionalProperties: false },
);

export const CancelBody = Type.Object(
  { reason: Type.Optional(Type.String({ maxLength: 2000, description: "Recorded in the ledger." })) },
  { additionalProperties: false },
);
export type CancelBody = Static<typeof CancelBody>;

const Status = Type.Union(ACTION_STATUSES.map((status) => Type.Literal(status)));
const Effect = Type.Union([Type.Literal("allow"), Type.Literal("deny"), Type.Literal("require_approval")]);
/** The decision in the vocabulary of gates (`EXECUTE`, `ABSTAIN` and `HALT`). */
export const GATE_OUTCOMES = { allow: "EXECUTE", require_approval: "ABSTAIN", deny: "HALT" } as const;
const Outcome = Type.Union([Type.Literal("EXECUTE"), Type.Literal("ABSTAIN"), Type.Literal("HALT")], {
  description:
    "Equivalent of `decision`: EXECUTE for allow, ABSTAIN for require_approval or a request that obligations changed, HALT for deny. Votes do not change it; `status` says whether the action may run now.",
});

const ANSWERS = ["approved", "rejected", "any"] as const;

export const ListQuery = Type.Object(
  {
    status: Type.Optional(Status),
    agent_id: Type.Optional(Type.String({ maxLength: 256 })),
    agent: Type.Optional(Type.String({ maxLength: 256, description: "Same as `agent_id`." })),
    tool: Type.Optional(Type.String({ maxLength: 256 })),
    operation: Type.Optional(Type.String({ maxLength: 256 })),
    request_hash: Type.Optional(
      Type.String({ pattern: "^[0-9a-f]{64}$", description: "`request_hash` of a record: 64 lowercase hex digits." }),
    ),
    grant_id: Type.Optional(Type.String({ maxLength: 64, description: "Actions that this grant covered." })),
    since: Type.Optional(timeSchema("Created at or after.")),
    until: Type.Optional(timeSchema("Created before.")),
    decision: Type.Optional(Effect),
    policy: Type.Optional(Type.String({ maxLength: 64, description: "Name of the policy that decided." })),
    rule: Type.Optional(Type.String({ maxLength: 256, description: "Rule or limit that decided." })),
    has_rule: Type.Optional(
      Type.Boolean({
        description: "`false` lists actions that no rule and no limit decided; `true` lists the others.",
      }),
    ),
    answer: Type.Optional(
      Type.Union(
        ANSWERS.map((answer) => Type.Literal(answer)),
        {
          description:
            "Actions that required approval and were answered by people or machine reviewers: `approved`, `rejected`, or `any` of both.",
        },
      ),
    ),
    q: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 200,
        description:
          "Words that each occur in the agent, the tool, the operation, the parameters, the context, the policy, the rule, the reason, a question or answer, the comment of a vote or of a lifted rejection, or the name of who gave it, in any case; or the first 8 or more characters of an id. One request searches 20,000 actions, including for `decision`, `policy`, `rule`, `has_rule` and `answer`, so a page can have fewer actions than `limit`, and `next_cursor` continues the search. Not with `offset`.",
      }),
    ),
    ...PAGE_QUERY,
  },
  { additionalProperties: false },
);
export type ListQuery = Static<typeof ListQuery>;

export const WaitQuery = Type.Object(
  {
    wait: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 86_400,
        description: "Seconds to wait while the action is pending, limited by `server.max_wait_seconds`.",
      }),
    ),
  },
  { additionalProperties: false },
);

/** Accepts any string. A string that is not an id results in a 404, because no action has it. */
export const IdParams = Type.Object(
  { id: Type.String({ description: "Action.", examples: ["019346a0-0000-7000-8000-000000000000"] }) },
  { additionalProperties: false },
);

const ApprovalRecord = Type.Object(
  {
    approver: Type.String({ description: "Principal: `user:<id>` or `key:<id>`." }),
    key_id: Type.String(),
    approve: Type.Boolean(),
    reason: orNull(Type.String()),
    self_approval: Type.Boolean(),
    on_behalf_of: orNull(
      Type.String({ description: "Principal of the user on whose behalf the approver voted, by a delegation." }),
    ),
    break_glass: Type.Boolean({
      description: "Whether the approver approved in an emergency without other approvers (break-glass).",
    }),
    method: Type.Union([Type.Literal("passkey"), Type.Literal("session"), Type.Literal("link"), Type.Literal("key")], {
      description:
        "How the approver gave the vote: signed with a passkey, in a session, by a personal link, or with an API key.",
    }),
    created_at: timeSchema("Time of the vote."),
  },
  { additionalProperties: false },
);

const QuestionRecord = Type.Object(
  {
    number: Type.Integer({ description: "Number of the question within the action, starting at 1." }),
    asked_by: Type.String({ description: "Principal of the approver." }),
    asked_at: timeSchema("When the question was asked."),
    question: Type.String(),
    answered_at: orNull(timeSchema("Time at which the question was answered; null until then.")),
    answer: orNull(Type.String({ description: "The agent's answer; null until it answers." })),
  },
  { additionalProperties: false },
);

const ReviewRecord = Type.Object(
  {
    reviewer: Type.String(),
    version: orNull(Type.String()),
    answer: orNull(Type.Union(REVIEW_ANSWERS.map((answer) => Type.Literal(answer)))),
    fault: orNull(
      Type.Union(
        REVIEWER_FAILURES.map((fault) => Type.Literal(fault)),
        { description: "Why there is no answer; null if there is one." },
      ),
    ),
    reason: orNull(Type.String()),
    latency_ms: Type.Integer(),
    created_at: timeSchema("When the answer was recorded."),
  },
  {
    additionalProperties: false,
    description: "Answer of a machine reviewer, in responses about one action whose rules name some. It is not a vote.",
  },
);

const OpenGroups = Type.Array(orNull(Type.String()), {
  description: "Groups from which another approval would count now. A null item means anyone.",
});
const ApprovalTerms = Type.Object(
  {
    mode: Type.Union([Type.Literal("maker_checker"), Type.Literal("self_confirm")], {
      description:
        "maker_checker: someone other than the person behind the agent approves. self_confirm: that person can also confirm with a passkey.",
    }),
    approvers: ApproverPlans,
    open_groups: OpenGroups,
    since: timeSchema("When the first stage opened."),
    editable: Type.Array(EditableParameter, {
      description: "Parameters that an approver can change now, with POST …/edit.",
    }),
    grants: orNull(
      Type.Object(
        {
          count: Type.Integer({ description: "Maximum number of uses." }),
          for_seconds: Type.Integer({ description: "Maximum duration in seconds." }),
        },
        {
          additionalProperties: false,
          description:
            "The largest grant that the rules allow; null if they allow none or the action is part of a plan.",
        },
      ),
    ),
    blocked: orNull(
      Type.Object(
        { code: Type.String(), detail: Type.String(), groups: OpenGroups },
        { additionalProperties: false, description: "Why this credential cannot approve the action now." },
      ),
    ),
    on_behalf_of: orNull(
      Type.String({ description: "Principal of the user on whose behalf this credential would approve." }),
    ),
    may_break_glass: Type.Boolean({
      description: "Whether this user can approve in an emergency without other approvers (break-glass).",
    }),
  },
  { additionalProperties: false, description: "Who can approve the pending action. In responses about one action." },
);

const Redecision = Type.Object(
  {
    effect: Effect,
    reason: Type.String(),
    reason_code: Type.String(),
    risk_level: orNull(Type.String()),
    policy: orNull(Type.String()),
    rule: orNull(Type.String()),
    policy_version: orNull(Type.Integer()),
    policy_hash: orNull(Type.String({ description: "Digest of the active policy set." })),
    approvals_needed: orNull(Type.Integer({ description: "Quorum that the active policies require." })),
    changed: Type.Array(Type.String(), {
      description: "Members that differ from the previous decision.",
    }),
  },
  {
    additionalProperties: false,
    description: "Result of evaluating the policies again, in the response to the request for a permit.",
  },
);

const DiffersFrom = orNull(
  Type.Object(
    {
      action_id: Type.String({ format: "uuid" }),
      members: Type.Array(
        Type.Object(
          {
            pointer: Type.String({ description: "JSON pointer into `{params, context}`." }),
            before: Type.Unknown({ description: "Null if the earlier action had no such member." }),
            after: Type.Unknown({ description: "Null if this action has no such member." }),
          },
          { additionalProperties: false },
        ),
        { description: `At most ${MAX_DIFFERENCES}. Long values are shortened.` },
      ),
    },
    {
      additionalProperties: false,
      description:
        "For an approver of a pending action: what differs from the agent's last action with the same tool and operation; null if there is none among the compared actions.",
    },
  ),
);

const AlternativeValue = Type.Object(
  {
    path: Type.String({ description: "The parameter, such as `params.amount`." }),
    value: Type.Number({ description: "The nearest value with which the policies would not deny the action." }),
    decision: Type.Union([Type.Literal("allow"), Type.Literal("require_approval")], {
      description: "The decision about the same action with this value.",
    }),
    text: Type.String({ description: "The same as a sentence." }),
  },
  {
    additionalProperties: false,
    description:
      "Only in the response to a submission or preview that the policies deny: the same action with another number would be allowed or need approval now. Absent if there is no such value, or if it cannot be computed.",
  },
);

const Pin = Type.Object(
  {
    path: Type.String({ description: "Such as `facts.invoice.total`." }),
    policy: Type.String({ description: "The policy that declares the fact." }),
    value: Type.Unknown({ description: "The value that a vote is about; null if the fact has no such member." }),
    previous: Type.Optional(
      Type.Unknown({ description: "The value before the action returned to its approvers, if it differs." }),
    ),
    current: Type.Optional(Type.Unknown({ description: "The value now, if it was read." })),
    state: Type.Union(
      [Type.Literal("same"), Type.Literal("changed"), Type.Literal("unreadable"), Type.Literal("not_read")],
      {
        description:
          "`same`: the current value equals `value`. `changed`: it differs, so a vote will be refused. `unreadable`: the source did not return it. `not_read`: the credential may not vote, so the source was not read.",
      },
    ),
  },
  { additionalProperties: false },
);

export const ActionRecord = Type.Object(
  {
    id: Type.String({ format: "uuid" }),
    agent_id: Type.String(),
    tool: Type.String(),
    operation: Type.String(),
    params: Json,
    context: Json,
    meta: Type.Record(Type.String(), Type.Unknown(), {
      description:
        "`meta` of the submission, or `{}`. The service adds the `traceparent` of the request, or of its own trace, if there is one.",
    }),
    questions: Type.Array(QuestionRecord, {
      description: `Questions of approvers to the agent, in order. At most ${MAX_QUESTIONS}. The agent answers with POST …/answers. Render the strings like \`params\`, because they can contain hidden characters.`,
    }),
    proposed: orNull(
      Type.Object(
        {
          params: Json,
          request_hash: Type.String(),
          edited_by: Type.String({
            description: "Principal of the approver; `policies` if obligations of rules changed it.",
          }),
          edited_at: timeSchema("When it was changed."),
          reason: orNull(Type.String()),
        },
        {
          additionalProperties: false,
          description:
            "The agent's original request if an approver or the policies changed it; otherwise null. The action's own `params` and `request_hash` are then those of the changed request, and only that request can run.",
        },
      ),
    ),
    status: Status,
    decision: Effect,
    outcome: Outcome,
    reason: Type.String(),
    reason_code: Type.String({ description: "Stable; see docs/policies.md." }),
    ...DENIAL_RESPONSE_FIELDS,
    risk_level: orNull(Type.String()),
    policy: orNull(Type.String()),
    rule: orNull(Type.String()),
    policy_hash: orNull(Type.String({ description: "Digest of the policy set of the decision." })),
    policy_version: orNull(Type.Integer()),
    request_hash: orNull(
      Type.String({
        description:
          "SHA-256 of the canonical request, hex; null if the request was erased or was altered in the store.",
      }),
    ),
    decision_hash: Type.String({ description: "Leaf hash of the decision's ledger entry, hex." }),
    provenance_id: Type.String({ description: "Same as `decision_hash`." }),
    submitted_by: Type.String({ description: "Id of the key that submitted the action." }),
    grant: orNull(Type.String({ description: "Grant that covered the action when it was decided; else null." })),
    plan: orNull(
      Type.Object(
        {
          id: Type.String({ format: "uuid" }),
          position: Type.Integer({ description: "Position in the plan, from 1." }),
        },
        {
          additionalProperties: false,
          description: "The plan that contains the action, which people approve as a whole; null if there is none.",
        },
      ),
    ),
    chain: Type.Optional(
      Type.Object(
        {
          authority: Type.String({ description: "The authority that the request names." }),
          links: Type.Array(
            Type.Object(
              {
                id: Type.String({ description: "The authority." }),
                agent_id: Type.String({ description: "The agent that gave it." }),
                key_id: Type.String({ description: "The key with which it was given." }),
                owner: orNull(Type.String({ description: "Principal of the user who owns this key." })),
                principal: Type.String(),
              },
              { additionalProperties: false },
            ),
            { description: "The authority and its ancestors, root first. Empty if it is unknown." },
          ),
          act: Type.Record(Type.String(), Type.Unknown(), {
            description:
              "The claim `act` of RFC 8693: `sub` is the agent that acts, and the nested `act` the agent that gave it the authority.",
          }),
        },
        {
          additionalProperties: false,
          description: "The agents under whose authority the agent acts. Absent if the request names no authority.",
        },
      ),
    ),
    approvals: Type.Array(ApprovalRecord),
    names: Type.Optional(
      Type.Record(Type.String(), Type.String(), {
        description:
          "Display names of the people and keys in this record, keyed by principal. They identify no one. Absent if the record mentions none.",
      }),
    ),
    reviews: Type.Optional(Type.Array(ReviewRecord)),
    approvals_needed: orNull(Type.Integer({ description: "Quorum; null if no approval was required." })),
    approved_until: orNull(timeSchema("Deadline of the start; null unless it was allowed or approved.")),
    permit: orNull(
      Type.String({
        description:
          "Signed statement that the action may run. Only in the response to `POST …/permit`, or to a submission with `Prefer: permit`; else null.",
      }),
    ),
    permit_expires_at: orNull(timeSchema("Expiry of the permit.")),
    credential: Type.Optional(
      Type.Object(
        {
          issuer: Type.String(),
          expires_at: timeSchema("When it expires, unless it is revoked earlier."),
          secret: Type.Record(Type.String(), Type.Unknown(), {
            description: "The secret with which the tool signs in. Not stored.",
          }),
        },
        {
          additionalProperties: false,
          description:
            "Only in the response to a start that a credential issuer covers: the credential for this action.",
        },
      ),
    ),
    expires_at: orNull(timeSchema("Deadline of the approval.")),
    result: Type.Union([
      Type.Object(
        { success: Type.Boolean(), error: orNull(Type.String()), meta: Json },
        { additionalProperties: false },
      ),
      Type.Null(),
    ]),
    waiting: Type.Boolean({
      description:
        "Whether the action's agent waits now, with `Prefer: wait` or `?wait`: the key that submitted the action, or a key bound to the agent.",
    }),
    asked_at: timeSchema("When the action was last submitted, joined or waited for."),
    erased_at: orNull(
      timeSchema(
        "When `params`, `context`, `meta` and `result` were erased, or null. After an erasure these members are empty; all others are unchanged.",
      ),
    ),
    created_at: timeSchema("When the action was submitted and decided."),
    updated_at: timeSchema("Last change of status."),
    preview: Type.Optional(
      orNull(
        Type.String({
          description:
            "What the action does, in the policy's words (`approval.preview`), with quoted and shortened values; null if the rule has no preview. For a settled action: absent if another version of the policy is active now, unless a key that may read actions reads the one action, which then has what an approver saw, or, if a grant allowed the action, the preview of the policies that decided.",
        }),
      ),
    ),
    shown_first: Type.Optional(
      Type.Array(Type.String(), {
        description:
          "JSON pointers of the members of `params` and `context` that the policy names, in display order. For a settled action: absent if another version of the policy is active now.",
      }),
    ),
    unusual: Type.Optional(
      Type.Array(Type.String(), {
        description: `For an approver of a pending action: what is unusual about it, as sentences that are safe to display. Names a tool or operation that the agent did not use before, a value that is new or rare for a member whose values repeat, an amount above the 99th percentile of earlier ones, and a negative amount if no earlier one was. At most ${MAX_UNUSUAL_SENTENCES}. Compared with at most ${MAX_COMPARED_ACTIONS} earlier actions of the agent. Never affects a decision.`,
      }),
    ),
    pins: Type.Optional(
      Type.Array(Pin, {
        description:
          "For an approver of a pending action whose rule pins facts: the values that a vote is about. If they have changed at the vote or at the start, the action returns to its approvers.",
      }),
    ),
    differs_from: Type.Optional(DiffersFrom),
    earlier_votes: Type.Optional(
      Type.Array(
        Type.Object(
          {
            action_id: Type.String({ format: "uuid" }),
            approver: Type.String(),
            approve: Type.Boolean(),
            reason: orNull(Type.String()),
            created_at: timeSchema("Time of the vote."),
          },
          { additionalProperties: false },
        ),
        {
          description:
            "For an approver of a pending action: up to five votes on the agent's newest earlier actions with the same tool and operation.",
        },
      ),
    ),
    compared_with: Type.Optional(
      Type.Integer({
        description: `Number of earlier actions of the agent with which the request was compared: of the newest ${MAX_COMPARED_ACTIONS}, those that the approver may see.`,
      }),
    ),
    altered: Type.Optional(
      Type.Literal(true, {
        description:
          "In lists: the stored request, `meta` or result cannot be read, because someone altered the store. These members are empty, and the action's own routes return RECORD_ALTERED.",
      }),
    ),
    inspect: Type.Optional(
      Type.Literal(true, {
        description:
          "Present if whoever runs the action must send its output to `POST /v1/actions/{id}/inspect`, and pass on only what that returns.",
      }),
    ),
    redecision: Type.Optional(Redecision),
    new_grant: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), {
        description: "The grant that the vote created, as `GET /v1/grants/{id}` returns it.",
      }),
    ),
    alternative: Type.Optional(AlternativeValue),
    approval_terms: Type.Optional(ApprovalTerms),
    approval_token: Type.Optional(Type.String({ description: "Only for a credential that may vote on this action." })),
  },
  { title: "Action", additionalProperties: false },
);
export type ActionRecord = Static<typeof ActionRecord>;

export const ActionList = Type.Object(
  { actions: Type.Array(ActionRecord), next_cursor: orNull(Type.String()) },
  { additionalProperties: false },
);

export const EventList = Type.Object(
  {
    events: Type.Array(
      Type.Object(
        {
          seq: Type.Integer(),
          hash: Type.String(),
          type: Type.String(),
          at: timeSchema("Time of the entry."),
          action_id: orNull(Type.String({ format: "uuid" })),
          entry: LedgerEntry,
        },
        { additionalProperties: false },
      ),
    ),
  },
  { additionalProperties: false },
);

export const GateQuery = Type.Object(
  {
    record: Type.Optional(
      Type.Boolean({
        description:
          "Submits the action and records the decision, like POST /v1/actions, so that limits count it. The response has its `action_id`; start the action before you run it.",
      }),
    ),
  },
  { additionalProperties: false },
);

export const GateResponse = Type.Object(
  {
    is_permission: Type.Literal(false, {
      description: "Always false: this response does not permit the action to run. Submit the action and start it.",
    }),
    action_id: orNull(Type.String({ format: "uuid", description: "With `record=true`: the new action." })),
    outcome: Outcome,
    decision: Type.Union([Effect, Type.Null()], {
      description:
        "Null if the rules allow the action but a limit applies, because only recorded decisions count; or if obligations change the request.",
    }),
    reason: Type.String(),
    reason_code: Type.String(),
    risk_level: orNull(Type.String()),
    policy: orNull(Type.String()),
    rule: orNull(Type.String()),
    policy_hash: orNull(Type.String()),
    policy_version: orNull(Type.Integer()),
    alternative: Type.Optional(AlternativeValue),
    request_hash: Type.String(),
    never_allowed: Type.Boolean({
      description: "Whether the active rules deny this operation for all parameters and contexts.",
    }),
  },
  { additionalProperties: false },
);
