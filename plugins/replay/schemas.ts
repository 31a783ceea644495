import { Type, type Static } from "@sinclair/typebox";
import { FlipFields } from "../policies/api.ts";
import { RangeFields } from "./backtest-requests.ts";

export const ReplayBody = Type.Object(
  {
    hash: Type.Optional(Type.String({ pattern: "^[0-9a-f]{64}$", description: "Leaf hash of the decision's entry." })),
    action_id: Type.Optional(Type.String({ format: "uuid" })),
    policy: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), {
        description: "A candidate policy: replaces the active policy of the same name, or is added to the set.",
      }),
    ),
    policy_set: Type.Optional(Type.Literal("current", { description: "Decides with the active set instead." })),
    ...RangeFields,
  },
  {
    additionalProperties: false,
    examples: [
      { action_id: "019346a0-0000-7000-8000-000000000000" },
      { policy_set: "current", since: "2026-01-01T00:00:00Z", limit: 1000 },
    ],
  },
);
export type ReplayBody = Static<typeof ReplayBody>;

export const RangeBody = Type.Omit(ReplayBody, ["hash", "action_id"], {
  additionalProperties: false,
  examples: [{ policy_set: "current", since: "2026-01-01T00:00:00Z", limit: 1000 }],
});

const Field = Type.Object(
  { field: Type.String(), recorded: Type.Unknown(), replayed: Type.Unknown(), equal: Type.Boolean() },
  { additionalProperties: false },
);
const Outcome = Type.Object(
  { policy_set: Type.Union([Type.String(), Type.Null()]), decision: Type.Record(Type.String(), Type.Unknown()) },
  { additionalProperties: false },
);
const LimitUsed = Type.Object(
  {
    policy: Type.String(),
    limit: Type.String(),
    basis: Type.String({ description: "Digest of the limit's definition." }),
    used: Type.Integer({ description: "Actions, or millionths of a sum." }),
  },
  { additionalProperties: false },
);
const History = Type.Object(
  {
    policy: Type.String(),
    basis: Type.String({ description: "Digest of the history's declaration and of the members that conditions read." }),
    actions: Type.Array(Type.Record(Type.String(), Type.Unknown()), { description: "Newest first." }),
    fault: Type.Union([Type.String(), Type.Null()], {
      description:
        "Why the history was unknown: `no_session`, `no_value`, `too_large` or `too_many`. Null if there is no fault.",
    }),
  },
  { additionalProperties: false },
);
const SourceFact = Type.Object(
  {
    policy: Type.String(),
    name: Type.String({ description: "Conditions read it as `facts.NAME`." }),
    basis: Type.String({ description: "Digest of the declaration of the fact." }),
    at: Type.String({ format: "date-time", description: "When it was read." }),
    value: Type.Unknown({ description: "Null if there is a fault." }),
    fault: Type.Union([Type.String(), Type.Null()], {
      description:
        "Why the value was unknown: `no_source`, `no_input`, `no_answer`, `not_found`, `too_large` or `wrong_type`. Null if there is no fault.",
    }),
  },
  { additionalProperties: false },
);
const Attributes = Type.Object(
  {
    agent_groups: Type.Array(Type.String()),
    agent_metadata: Type.Record(Type.String(), Type.Unknown()),
    groups: Type.Array(Type.String()),
    roles: Type.Array(Type.String()),
  },
  { additionalProperties: false },
);
const COMPARISON = {
  hash: Type.String(),
  at: Type.String({ format: "date-time", description: "Recorded time of the decision, which the replay used." }),
  equal: Type.Boolean({ description: "Whether all fields and the bytes of the entry are equal." }),
  fields: Type.Array(Field),
  limits: Type.Union([Type.Array(LimitUsed), Type.Null()], {
    description:
      "Usage of limits before the decision, except of limits that read a redacted parameter; null for keys that cannot see all actions.",
  }),
  histories: Type.Union([Type.Array(History), Type.Null()], {
    description:
      "Past actions that the conditions read, except histories that are grouped by a redacted parameter; null for keys that cannot see all actions.",
  }),
  sources: Type.Union([Type.Array(SourceFact), Type.Null()], {
    description: "Values of fact sources that the conditions read; null for keys that cannot see all actions.",
  }),
  attributes: Type.Union([Attributes, Type.Null()], {
    description:
      "Attributes of the agent and its principal; null if no policy read one, and for keys that cannot see all actions.",
  }),
  recorded: Outcome,
  replayed: Outcome,
};
export const ReplayAnswer = Type.Object(
  {
    kind: Type.Literal("decision", { description: "One decision was replayed." }),
    action_id: Type.String(),
    ...COMPARISON,
    redecisions: Type.Array(
      Type.Object(
        {
          occasion: Type.Union([Type.String(), Type.Null()], {
            description: "`vote`, `start`, `permit`, `review` or `edit`.",
          }),
          ...COMPARISON,
        },
        { additionalProperties: false },
      ),
      {
        description: "With `action_id`: later decisions on the same action, oldest first. `equal` above includes them.",
      },
    ),
    now: Type.Union(
      [
        Type.Object(
          {
            policy_set: Type.Union([Type.String(), Type.Null()]),
            decision: Type.Record(Type.String(), Type.Unknown()),
            changed: Type.Boolean(),
            fields: Type.Array(Field),
          },
          { additionalProperties: false },
        ),
        Type.Null(),
      ],
      { description: "The decision with the requested policies; null if none were requested." },
    ),
  },
  { title: "Replay", additionalProperties: false },
);

const BacktestResponse = Type.Object(
  {
    policy_set: Type.Union([Type.String(), Type.Null()], {
      description: "Digest of the policy set that evaluated the decisions.",
    }),
    ...FlipFields,
  },
  { additionalProperties: false },
);

export const ReplayedRange = Type.Composite(
  [
    Type.Object({ kind: Type.Literal("backtest", { description: "Decisions of a range were replayed." }) }),
    BacktestResponse,
  ],
  { title: "Backtest", additionalProperties: false },
);
