import { Type, type Static } from "@sinclair/typebox";
import { ACTION_STATUSES, LedgerEntry } from "../../src/core.ts";
import { PAGE_QUERY } from "../../src/plugin.ts";
import { DENIAL_FIELDS } from "./rejection-schemas.ts";

/** Names are compared, shown to people and written to logs: nothing in them hides or has two spellings. */
const Name = (description: string) => Type.String({ minLength: 1, maxLength: 256, format: "name", description });
const Json = Type.Record(Type.String(), Type.Unknown());
export const Nullable = <T extends ReturnType<typeof Type.String> | ReturnType<typeof Type.Integer>>(schema: T) =>
  Type.Union([schema, Type.Null()]);
const Time = (description: string) => Type.String({ format: "date-time", description });

export const ActionBody = Type.Object(
  {
    agent_id: Name("Agent that wants to act. A key bound to an agent may name only that one."),
    tool: Name("Tool to be used, e.g. `stripe`."),
    operation: Name("What the tool is to do, e.g. `refund`."),
    params: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), { description: "Arguments, as the tool will get them." }),
    ),
    context: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), {
        description: "Why and for whom: ticket, user, environment. Policies see it and the request hash covers it.",
      }),
    ),
    meta: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), {
        description:
          "Kept and shown beside the request, up to 4,096 bytes: trace, session, host, tool call. No policy sees it, the request hash does not cover it.",
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
      description: "The `approval_token` that this credential sees on the action.",
    }),
    approve: Type.Boolean({ description: "False denies." }),
    reason: Type.Optional(Type.String({ maxLength: 2000, description: "Recorded in the ledger." })),
  },
  { additionalProperties: false },
);
export type ApprovalBody = Static<typeof ApprovalBody>;

const Attempt = (description: string) =>
  Type.Optional(Type.String({ pattern: "^[A-Za-z0-9._~-]{16,64}$", description, examples: ["run-7f3a91c2d4e8b605"] }));

export const StartBody = Type.Object(
  {
    permit: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 8192,
        description: "Of this action. The key that submitted the action needs none.",
      }),
    ),
    attempt: Attempt(
      "Made at random for this one start. Where the answer is missing, the same start may be sent again with it, and is answered as the first one was while the action may still start.",
    ),
  },
  { additionalProperties: false },
);
export type StartBody = Static<typeof StartBody>;

export const PermitBody = Type.Object({}, { additionalProperties: false });

export const ResultBody = Type.Object(
  {
    success: Type.Boolean(),
    error: Type.Optional(Nullable(Type.String({ maxLength: 10_000, description: "What went wrong." }))),
    meta: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), { description: "Anything worth keeping: ids, amounts, durations." }),
    ),
    attempt: Attempt(
      "Of the start that this ends. With it the result of another start is refused, also where this key made that one.",
    ),
  },
  { additionalProperties: false },
);
export type ResultBody = Static<typeof ResultBody>;

export const CancelBody = Type.Object(
  { reason: Type.Optional(Type.String({ maxLength: 2000, description: "Recorded in the ledger." })) },
  { additionalProperties: false },
);
export type CancelBody = Static<typeof CancelBody>;

const Status = Type.Union(ACTION_STATUSES.map((status) => Type.Literal(status)));
const Effect = Type.Union([Type.Literal("allow"), Type.Literal("deny"), Type.Literal("require_approval")]);
/** The decision in the words of gates: go on, do not by yourself, stop. */
export const OUTCOME = { allow: "EXECUTE", require_approval: "ABSTAIN", deny: "HALT" } as const;
const Outcome = Type.Union([Type.Literal("EXECUTE"), Type.Literal("ABSTAIN"), Type.Literal("HALT")], {
  description:
    "`decision` in other words, EXECUTE for allow, ABSTAIN for require_approval, HALT for deny: what the policies said, whatever people said since. Whether the action may run now is its `status`.",
});

export const ListQuery = Type.Object(
  {
    status: Type.Optional(Status),
    agent_id: Type.Optional(Type.String({ maxLength: 256 })),
    agent: Type.Optional(Type.String({ maxLength: 256, description: "Same as `agent_id`." })),
    tool: Type.Optional(Type.String({ maxLength: 256 })),
    operation: Type.Optional(Type.String({ maxLength: 256 })),
    request_hash: Type.Optional(
      Type.String({ pattern: "^[0-9a-f]{64}$", description: "64 lowercase hex digits, as records have it." }),
    ),
    since: Type.Optional(Time("Created at or after.")),
    until: Type.Optional(Time("Created before.")),
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
        description: "Seconds to wait for a verdict; cut to what the service grants.",
      }),
    ),
  },
  { additionalProperties: false },
);

/** Of any form: what is no id is no action's. */
export const IdParams = Type.Object(
  { id: Type.String({ description: "Action.", examples: ["019346a0-0000-7000-8000-000000000000"] }) },
  { additionalProperties: false },
);

const ApprovalRecord = Type.Object(
  {
    approver: Type.String({ description: "Principal: `owner:<owner>` or `key:<id>`." }),
    key_id: Type.String(),
    approve: Type.Boolean(),
    reason: Nullable(Type.String()),
    self_approval: Type.Boolean(),
    created_at: Time("When."),
  },
  { additionalProperties: false },
);

const Redecision = Type.Object(
  {
    effect: Effect,
    reason: Type.String(),
    reason_code: Type.String(),
    risk_level: Nullable(Type.String()),
    policy: Nullable(Type.String()),
    rule: Nullable(Type.String()),
    policy_version: Nullable(Type.Integer()),
    policy_hash: Nullable(Type.String({ description: "Digest of the policy set of this moment." })),
    approvals_needed: Nullable(Type.Integer({ description: "Quorum that the policies of this moment ask for." })),
    changed: Type.Array(Type.String(), {
      description: "Which of these members are not as they were decided before.",
    }),
  },
  {
    additionalProperties: false,
    description: "What was decided again, in the answer to the request for a permit that made it.",
  },
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
      description: "What was sent beside the request, with the request's `traceparent`; `{}` where nothing was.",
    }),
    status: Status,
    decision: Effect,
    outcome: Outcome,
    reason: Type.String(),
    reason_code: Type.String({ description: "Stable; see docs/policies.md." }),
    ...DENIAL_FIELDS,
    risk_level: Nullable(Type.String()),
    policy: Nullable(Type.String()),
    rule: Nullable(Type.String()),
    policy_hash: Nullable(Type.String({ description: "Digest of the policy set that decided." })),
    policy_version: Nullable(Type.Integer()),
    request_hash: Nullable(
      Type.String({ description: "SHA-256 of the canonical request, hex; null when it was erased." }),
    ),
    decision_hash: Type.String({ description: "Leaf hash of the decision's ledger entry, hex." }),
    provenance_id: Type.String({ description: "Same as `decision_hash`." }),
    submitted_by: Type.String({ description: "Key." }),
    approvals: Type.Array(ApprovalRecord),
    approvals_needed: Nullable(Type.Integer({ description: "Quorum; null where no approval was asked for." })),
    approved_until: Nullable(Time("Until when it may start; null unless it was allowed or approved.")),
    permit: Nullable(
      Type.String({
        description:
          "Signed statement that the action may run, in the answer to a request for one: `POST …/permit`, or `Prefer: permit` with the submission. Null everywhere else.",
      }),
    ),
    permit_expires_at: Nullable(Time("End of that permit.")),
    expires_at: Nullable(Time("End of the time to approve.")),
    result: Type.Union([
      Type.Object(
        { success: Type.Boolean(), error: Nullable(Type.String()), meta: Json },
        { additionalProperties: false },
      ),
      Type.Null(),
    ]),
    waiting: Type.Boolean({
      description:
        "Whether the action's agent waits for the verdict at this moment: with `Prefer: wait` or `?wait`, and the key that submitted or one that is bound to the agent.",
    }),
    asked_at: Time("When it was last asked for: submitted, joined or waited for."),
    erased_at: Nullable(
      Time("When `params`, `context`, `meta` and `result` were erased: they are empty then, and the rest stands."),
    ),
    created_at: Time("When it was decided."),
    updated_at: Time("Last change of status."),
    shown_first: Type.Optional(
      Type.Array(Type.String(), {
        description:
          "JSON pointers of the members of `params` and `context` that the policy names, in the order in which people see them. Where a pending action is read.",
      }),
    ),
    redecision: Type.Optional(Redecision),
    approval_token: Type.Optional(
      Type.String({ description: "For a credential that may approve this action, and nobody else." }),
    ),
  },
  { title: "Action", additionalProperties: false },
);
export type ActionRecord = Static<typeof ActionRecord>;

export const ActionList = Type.Object(
  { actions: Type.Array(ActionRecord), next_cursor: Nullable(Type.String()) },
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
          at: Time("When."),
          action_id: Nullable(Type.String({ format: "uuid" })),
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
          "Submits the action and records the decision, as POST /v1/actions does, so that limits count it. `action_id` names it; start it before it runs.",
      }),
    ),
  },
  { additionalProperties: false },
);

export const GateAnswer = Type.Object(
  {
    is_permission: Type.Literal(false, {
      description:
        "Always false: this answer is no permission to run anything. Submit the action and start it, which happens once.",
    }),
    action_id: Nullable(Type.String({ format: "uuid", description: "With `record=true`: the action that was made." })),
    outcome: Outcome,
    decision: Type.Union([Effect, Type.Null()], {
      description: "Null where the rules allow the action and a limit applies: only a recorded decision counts.",
    }),
    reason: Type.String(),
    reason_code: Type.String(),
    risk_level: Nullable(Type.String()),
    policy: Nullable(Type.String()),
    rule: Nullable(Type.String()),
    policy_hash: Nullable(Type.String()),
    policy_version: Nullable(Type.Integer()),
    request_hash: Type.String(),
    never_allowed: Type.Boolean({
      description: "Whether the active rules deny this operation with any parameters and context.",
    }),
  },
  { additionalProperties: false },
);
