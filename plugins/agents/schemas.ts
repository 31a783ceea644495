import { Type, type Static, type TSchema } from "@sinclair/typebox";
import { PAGE_QUERY } from "../../src/plugin.ts";

const CLEAN = "^[^\\u0000-\\u001f\\u007f]*$";
const Label = (maxLength: number, description: string) =>
  Type.String({ minLength: 1, maxLength, pattern: CLEAN, description });
const Name = (maxLength: number, description: string) =>
  Type.String({ minLength: 1, maxLength, format: "name", description });
const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);
// Bounded so that the whole list fits into a ledger entry.
const Tools = () =>
  Type.Array(Name(128, "Glob: `*` matches any characters, `?` one character."), {
    maxItems: 100,
    description:
      "Tools that the agent may use, without regard to case. Null allows every tool; an empty list allows none.",
  });

const changeable = {
  name: Type.Optional(Label(100, "Display name. Default: the id.")),
  description: Type.Optional(nullable(Type.String({ maxLength: 2000 }))),
  allowed_tools: Type.Optional(nullable(Tools())),
  metadata: Type.Optional(
    Type.Record(Type.String(), Type.Unknown(), {
      description: "Any data of at most 16 KiB as JSON. Conditions in policies read it as `agent_metadata`.",
    }),
  ),
};

export const AgentBody = Type.Object(
  { id: Name(256, "Value of `agent_id` in actions."), ...changeable },
  {
    additionalProperties: false,
    examples: [
      {
        id: "support-bot",
        name: "Support bot",
        description: "Answers tickets.",
        allowed_tools: ["stripe", "crm.*"],
        metadata: { team: "support" },
      },
    ],
  },
);
export type AgentBody = Static<typeof AgentBody>;

export const AgentPatch = Type.Object(changeable, {
  additionalProperties: false,
  minProperties: 1,
  description: "Absent members do not change.",
  examples: [{ allowed_tools: ["stripe"] }],
});
export type AgentPatch = Static<typeof AgentPatch>;

export const SuspendBody = Type.Object(
  { reason: Type.Optional(Type.String({ maxLength: 500, description: "Recorded in the ledger." })) },
  { additionalProperties: false, examples: [{ reason: "sends refunds that no one requested" }] },
);
export type SuspendBody = Static<typeof SuspendBody>;

export const AgentParams = Type.Object(
  { id: Type.String({ minLength: 1, maxLength: 256, description: "Id of the agent." }) },
  { additionalProperties: false },
);

export const ListQuery = Type.Object(
  { status: Type.Optional(Type.Union([Type.Literal("active"), Type.Literal("suspended")])), ...PAGE_QUERY },
  { additionalProperties: false },
);
export type ListQuery = Static<typeof ListQuery>;

const Time = Type.String({ format: "date-time" });

export const AgentRecord = Type.Object(
  {
    id: Type.String(),
    name: Type.String(),
    description: nullable(Type.String()),
    allowed_tools: Type.Union([Type.Array(Type.String()), Type.Null()]),
    metadata: Type.Record(Type.String(), Type.Unknown()),
    status: Type.Union([Type.Literal("active"), Type.Literal("suspended")]),
    suspended_at: Type.Union([Time, Type.Null()]),
    suspended_reason: nullable(Type.String()),
    version: Type.Integer({ description: "Increases with every change; also the `ETag`." }),
    created_by: nullable(Type.String({ description: "Id of the key or user that registered the agent." })),
    created_at: Time,
    updated_at: Time,
  },
  {
    title: "Agent",
    additionalProperties: false,
    examples: [
      {
        id: "support-bot",
        name: "Support bot",
        description: "Answers tickets.",
        allowed_tools: ["stripe", "crm.*"],
        metadata: { team: "support" },
        status: "active",
        suspended_at: null,
        suspended_reason: null,
        version: 1,
        created_by: "019346a0-0000-7000-8000-000000000000",
        created_at: "2026-01-31T12:00:00.000Z",
        updated_at: "2026-01-31T12:00:00.000Z",
      },
    ],
  },
);
export type AgentRecord = Static<typeof AgentRecord>;

export const AgentList = Type.Object(
  { agents: Type.Array(AgentRecord), next_cursor: Type.Union([Type.String(), Type.Null()]) },
  { additionalProperties: false },
);
