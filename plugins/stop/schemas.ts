import { Type, type Static, type TString } from "@sinclair/typebox";

const Time = (description: string) => Type.String({ format: "date-time", description });
const nullable = <T extends TString>(schema: T) => Type.Union([schema, Type.Null()]);
const Glob = (noun: string) =>
  Type.String({
    minLength: 1,
    maxLength: 256,
    format: "name",
    description: `${noun} Glob: \`*\` matches any characters, \`?\` one character. Ignores case.`,
  });
const Reason = Type.String({ minLength: 1, maxLength: 500, description: "Recorded permanently in the ledger." });

export const StopBody = Type.Object(
  {
    reason: Reason,
    agent: Type.Optional(Glob("Stops only these agents.")),
    tool: Type.Optional(Glob("Stops only the use of these tools.")),
    policy: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 256,
        description: "Name of a policy. Stops only actions that its rules or limits decide.",
      }),
    ),
    until: Type.Optional(Time("When the stop expires. Default: never.")),
  },
  {
    additionalProperties: false,
    description: "If several selectors are given, all must match. Without a selector, everything is stopped.",
    examples: [{ reason: "refunds that no one requested", tool: "stripe" }],
  },
);
export type StopBody = Static<typeof StopBody>;

export const LiftBody = Type.Object(
  { reason: Type.Optional(Reason) },
  { additionalProperties: false, examples: [{ reason: "the key was revoked" }] },
);

export const StopParams = Type.Object(
  { id: Type.String({ minLength: 1, maxLength: 64, description: "Id of the stop." }) },
  { additionalProperties: false },
);

const Lift = Type.Object(
  {
    by: Type.String({ description: "Principal." }),
    at: Time("Time of the request to lift the stop."),
    reason: nullable(Type.String()),
  },
  { additionalProperties: false },
);

export const StopRecord = Type.Object(
  {
    id: Type.String(),
    status: Type.Union(
      (["holds", "ended", "lifted"] as const).map((status) => Type.Literal(status)),
      { description: "ended: its end time has passed." },
    ),
    agent: nullable(Type.String({ description: "Glob of the agents that are stopped; null for all." })),
    tool: nullable(Type.String({ description: "Glob of the tools that are stopped; null for all." })),
    policy: nullable(Type.String({ description: "Policy whose actions are stopped; null for all policies." })),
    until: nullable(Time("When it expires; null if never.")),
    placed_at: Time("When it was placed."),
    reason: nullable(Type.String({ description: "Null for keys that neither see all actions nor have `stop:write`." })),
    placed_by: nullable(
      Type.String({ description: "Principal; null for keys that neither see all actions nor have `stop:write`." }),
    ),
    lift: Type.Object(
      {
        needed: Type.Integer({ description: "Number of people who must request to lift the stop." }),
        asked: Type.Array(Lift, {
          description:
            "Requests to lift the stop, in order; empty for keys that neither see all actions nor have `stop:write`.",
        }),
      },
      { additionalProperties: false },
    ),
    lifted_at: nullable(Time("When it was lifted.")),
    seq: Type.Integer({ description: "Sequence number of the ledger entry that placed it." }),
  },
  {
    title: "Stop",
    additionalProperties: false,
    examples: [
      {
        id: "019346a0-0000-7000-8000-000000000000",
        status: "holds",
        agent: null,
        tool: "stripe",
        policy: null,
        until: null,
        placed_at: "2026-01-31T12:00:00.000Z",
        reason: "refunds that no one requested",
        placed_by: "user:019346a0-0000-7000-8000-000000000000",
        lift: { needed: 2, asked: [] },
        lifted_at: null,
        seq: 4711,
      },
    ],
  },
);
export type StopRecord = Static<typeof StopRecord>;

export const StopList = Type.Object(
  { stops: Type.Array(StopRecord, { description: "Active stops that this key can see, oldest first." }) },
  { additionalProperties: false },
);
