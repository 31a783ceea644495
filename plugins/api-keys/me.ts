/** Routes that describe the caller's key, and look up the names of keys by their ids. */
import { userState } from "../../src/core.ts";
import { Type } from "@sinclair/typebox";
import { canSeeAgent, type CoreHost, principalOfUser, readPrincipalNames, type User } from "../../src/core.ts";
import { defineRoute, toRfc3339 } from "../../src/plugin.ts";
import type { KeyRow } from "../../src/storage/index.ts";

const TAG = "api-keys";
const UUID = "[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}";
/** Maximum number of ids in one request. */
const MAX_IDS = 100;

const NullableString = Type.Union([Type.String(), Type.Null()]);

const Me = Type.Object(
  {
    principal: Type.String({
      description: "Principal of the caller in records: `user:<id>`, or `key:<id>` of a key without an owner.",
    }),
    scopes: Type.Array(Type.String(), { description: "All scopes of this key, with presets and `admin` expanded." }),
    claims: Type.Record(Type.String(), Type.Unknown(), {
      description: "Verified claims of a workload's token, as conditions read them. Empty for a key.",
    }),
    key: Type.Object(
      {
        id: Type.String({ format: "uuid" }),
        name: Type.String(),
        owner: NullableString,
        agent_id: NullableString,
        expires_at: Type.Union([Type.String(), Type.Null()], {
          description: "Expiry of the key, or of the workload's token.",
        }),
      },
      { additionalProperties: false },
    ),
  },
  { title: "Me", additionalProperties: false },
);

const NamesQuery = Type.Object(
  {
    ids: Type.String({
      pattern: `^${UUID}(?:,${UUID}){0,${MAX_IDS - 1}}$`,
      maxLength: 37 * MAX_IDS,
      description: `Ids of keys or users, up to ${MAX_IDS}, separated by commas.`,
    }),
  },
  { additionalProperties: false },
);

const Names = Type.Object(
  {
    keys: Type.Array(
      Type.Object(
        { id: Type.String({ format: "uuid" }), name: Type.String(), owner: NullableString },
        { additionalProperties: false },
      ),
      { description: "The existing keys, including revoked and expired ones, in no particular order." },
    ),
  },
  { additionalProperties: false },
);

/** Returns the user in the form of a key, because records identify a session by the id of its user. */
function renderAsKey(user: User | undefined): Pick<KeyRow, "id" | "name" | "owner" | "agent_id"> | null {
  return user === undefined ? null : { id: user.id, name: user.name, owner: principalOfUser(user.id), agent_id: null };
}

export function meRoutes(host: CoreHost) {
  return [
    defineRoute({
      method: "GET",
      path: "/v1/me",
      tag: TAG,
      summary: "Describe the caller's key",
      scope: host.scopes,
      responses: { 200: { description: "The key of the request.", schema: Me } },
      handle({ credential }) {
        const { id, name, owner, agent_id } = credential.key;
        const expires_at = credential.workload?.expires_at ?? credential.key.expires_at;
        return {
          status: 200,
          json: {
            principal: credential.principal,
            scopes: host.scopes.filter((scope) => credential.hasScope(scope)),
            claims: credential.workload?.claims ?? {},
            key: { id, name, owner, agent_id, expires_at: expires_at === null ? null : toRfc3339(expires_at) },
          },
        };
      },
    }),
    defineRoute({
      method: "GET",
      path: "/v1/api-keys/names",
      tag: TAG,
      summary: "Resolve ids of keys and users to names",
      scope: ["actions:read", "provenance:read", "keys:manage"],
      query: NamesQuery,
      responses: { 200: { description: "The names.", schema: Names } },
      async handle({ query, credential }) {
        const { agent_id } = credential.key;
        // A bound key sees only keys of its agent, unless it may read the records that refer to the keys.
        const narrow =
          agent_id !== null && !credential.hasScope("actions:read") && !credential.hasScope("provenance:read");
        const ids = [...new Set(query.ids.split(","))];
        const users = await host.state(userState);
        const rows = await Promise.all(
          ids.map(async (id) => (await host.storage.key(id)) ?? renderAsKey(users.get(id))),
        );
        const mayName = (key: { agent_id: string | null }): boolean =>
          narrow ? key.agent_id === agent_id : key.agent_id === null || canSeeAgent(credential, key.agent_id);
        // A name that several users have is followed by the id.
        const names = await readPrincipalNames(host.storage, users, ids.map(principalOfUser));
        const keys = rows.flatMap((key) =>
          key === null || !mayName(key)
            ? []
            : [{ id: key.id, name: names[principalOfUser(key.id)] ?? key.name, owner: key.owner }],
        );
        return { status: 200, json: { keys } };
      },
    }),
  ];
}
