/** Schemas of the key routes. */
import { Type, type Static } from "@sinclair/typebox";
import { REFERENCE_FORMS, SCOPE_PRESETS } from "../../src/core.ts";
import { PAGE_QUERY, type Scope } from "../../src/plugin.ts";

const NullableString = Type.Union([Type.String(), Type.Null()]);
const Label = (description: string) =>
  Type.String({ minLength: 1, maxLength: 100, pattern: "^[^\\u0000-\\u001f\\u007f]*$", description });

/** @param scopes all existing scopes */
export const keyBody = (scopes: readonly Scope[]) =>
  Type.Object(
    {
      name: Label("Unique among live keys."),
      preset: Type.Optional(
        Type.Union(
          Object.keys(SCOPE_PRESETS).map((name) => Type.Literal(name as keyof typeof SCOPE_PRESETS)),
          {
            description: "A predefined set of scopes, added to `scopes`. Default: `agent` if `scopes` is also absent.",
          },
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
            description:
              "Agent that the key is bound to. The key submits only as this agent, and sees only this agent's actions.",
          }),
          Type.Null(),
        ]),
      ),
      owner: Type.Optional(
        Type.Union([
          Type.String({
            minLength: 1,
            maxLength: 1000,
            description: `The user to whom the key belongs, or who is behind its agent: ${REFERENCE_FORMS}. A name identifies no one. Default: the creator of the key, which is the user of the session or the owner of the creating key. Once people sign in, a key that may approve needs an owner. A key has at most the rights of its owner. Keys of one owner count as one approver, and cannot approve each other's actions.`,
          }),
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
    description: "Accurate to two minutes; null if the key was never used.",
  }),
};
export const KeyRecord = Type.Object(fields, { title: "ApiKey", additionalProperties: false });
export const CreatedKey = Type.Object(
  {
    ...fields,
    key: Type.Union([Type.String(), Type.Null()], {
      description:
        "The value of the key. It is returned only once and not stored; null if the Idempotency-Key was used before.",
    }),
    warnings: Type.Array(Type.String(), { description: "Points to consider before handing out the key." }),
  },
  { additionalProperties: false },
);
export const KeyList = Type.Object(
  { api_keys: Type.Array(KeyRecord), next_cursor: Type.Union([Type.String(), Type.Null()]) },
  { additionalProperties: false },
);
/** Accepts any string. A string that is not an id results in a 404, because no key has it. */
export const IdParams = Type.Object(
  { id: Type.String({ examples: ["019346a0-0000-7000-8000-000000000000"] }) },
  { additionalProperties: false },
);

export const ListQuery = Type.Object(
  {
    status: Type.Optional(
      Type.Union([Type.Literal("live"), Type.Literal("ended")], { description: "`ended`: revoked or expired." }),
    ),
    agent_id: Type.Optional(Type.String({ maxLength: 256, description: "Keys that are bound to this agent." })),
    principal: Type.Optional(
      Type.String({
        maxLength: 256,
        description: "Keys whose votes count as this principal's: `user:<id>` or `key:<id>`.",
      }),
    ),
    ...PAGE_QUERY,
  },
  { additionalProperties: false },
);
export type ListQuery = Static<typeof ListQuery>;
export type KeyRecord = Static<typeof KeyRecord>;
