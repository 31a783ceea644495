/** What the key routes take and answer. */
import { Type, type Static } from "@sinclair/typebox";
import { type Preset, PRESETS } from "../../src/core.ts";
import { PAGE_QUERY, type Scope } from "../../src/plugin.ts";

const NullableString = Type.Union([Type.String(), Type.Null()]);
const Label = (description: string) =>
  Type.String({ minLength: 1, maxLength: 100, pattern: "^[^\\u0000-\\u001f\\u007f]*$", description });

/** @param scopes all that there are */
export const keyBody = (scopes: readonly Scope[]) =>
  Type.Object(
    {
      name: Label("Unique among live keys."),
      preset: Type.Optional(
        Type.Union(
          Object.keys(PRESETS).map((name) => Type.Literal(name as Preset)),
          { description: "Scopes by purpose; joined with `scopes`. `agent` where neither is sent." },
        ),
      ),
      scopes: Type.Optional(
        Type.Array(Type.Union(scopes.map((scope) => Type.Literal(scope))), {
          maxItems: scopes.length,
          uniqueItems: true,
        }),
      ),
      agent_id: Type.Optional(
        Type.Union([
          Type.String({
            minLength: 1,
            maxLength: 100,
            format: "name",
            description: "Agent that the key is bound to: it submits only as that agent and sees only its actions.",
          }),
          Type.Null(),
        ]),
      ),
      owner: Type.Optional(
        Type.Union([
          Label(
            "Person or team behind the key; a key that may approve needs one. Keys of one owner count as one approver, and cannot approve each other's actions; capitals and spaces make no other owner.",
          ),
          Type.Null(),
        ]),
      ),
      expires_at: Type.Optional(Type.Union([Type.String({ format: "date-time" }), Type.Null()])),
    },
    { additionalProperties: false, examples: [{ name: "support-bot", preset: "agent", agent_id: "support-bot" }] },
  );
export type KeyBody = Static<ReturnType<typeof keyBody>>;

const fields = {
  id: Type.String({ format: "uuid" }),
  name: Type.String(),
  prefix: Type.String({ description: "First characters of the value." }),
  scopes: Type.Array(Type.String()),
  agent_id: NullableString,
  owner: NullableString,
  created_by: NullableString,
  created_at: Type.String({ format: "date-time" }),
  expires_at: NullableString,
  revoked_at: NullableString,
  last_used_at: Type.Union([Type.String({ format: "date-time" }), Type.Null()], {
    description: "To within two minutes; null when never.",
  }),
};
export const KeyRecord = Type.Object(fields, { title: "ApiKey", additionalProperties: false });
export const CreatedKey = Type.Object(
  {
    ...fields,
    key: Type.Union([Type.String(), Type.Null()], {
      description:
        "The value. It is shown this once and kept nowhere; null when the same Idempotency-Key is sent again.",
    }),
    warnings: Type.Array(Type.String(), { description: "What to think of before the key is given away." }),
  },
  { additionalProperties: false },
);
export const KeyList = Type.Object(
  { api_keys: Type.Array(KeyRecord), next_cursor: Type.Union([Type.String(), Type.Null()]) },
  { additionalProperties: false },
);
/** Of any form: what is no id is nobody's. */
export const IdParams = Type.Object(
  { id: Type.String({ examples: ["019346a0-0000-7000-8000-000000000000"] }) },
  { additionalProperties: false },
);

export const ListQuery = Type.Object(
  {
    status: Type.Optional(
      Type.Union([Type.Literal("live"), Type.Literal("ended")], { description: "`ended`: revoked or expired." }),
    ),
    ...PAGE_QUERY,
  },
  { additionalProperties: false },
);
export type ListQuery = Static<typeof ListQuery>;
export type KeyRecord = Static<typeof KeyRecord>;
