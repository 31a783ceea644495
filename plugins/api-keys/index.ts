/** API keys: creates, lists and revokes them. A change applies from the next request. */
import {
  userState,
  canCreateApprovers,
  canAdministerAgent,
  confirmCredential,
  type CoreHost,
  defineCorePlugin,
  findCreatedResource,
  findReferredUser,
  hasScope,
  type LedgerTransaction,
  parseRfc3339,
  SCOPE_PRESETS,
  principalOfKey,
  principalOfUser,
  REFERENCE_FORMS,
  readIdempotentCall,
  recordCreatedResource,
  REPLAYED_HEADERS,
  scopesBeyondOwner,
  toActor,
} from "../../src/core.ts";
import {
  type Credential,
  defineRoute,
  nextLink,
  Refusal,
  type Reply,
  type Scope,
  slicePage,
  toRfc3339,
} from "../../src/plugin.ts";
import type { KeyRow } from "../../src/storage/index.ts";
import { revokeKey } from "./api.ts";
import { meRoutes } from "./me.ts";
import * as schema from "./schemas.ts";

const TAG = "api-keys";

export default defineCorePlugin({
  name: "api-keys",
  setup: (host) => ({ routes: routes(host) }),
});

function routes(host: CoreHost) {
  return [
    ...meRoutes(host),
    defineRoute({
      method: "GET",
      path: "/v1/api-keys",
      tag: TAG,
      summary: "List keys, newest first",
      description:
        "A key without `keys:manage` sees only itself. A key that is bound to an agent sees the keys of that agent.",
      scope: host.scopes,
      query: schema.ListQuery,
      responses: { 200: { description: "A page, including revoked and expired keys.", schema: schema.KeyList } },
      errors: ["INVALID_CURSOR"],
      handle: ({ query, credential }) => list(host, query, credential),
    }),
    defineRoute({
      method: "POST",
      path: "/v1/api-keys",
      tag: TAG,
      summary: "Create a key",
      scope: "keys:manage",
      body: schema.keyBody(host.scopes),
      idempotent: true,
      responses: {
        200: {
          description: "An earlier request with this Idempotency-Key created the key; its value is not returned again.",
          schema: schema.CreatedKey,
        },
        201: { description: "The key. Only this response contains its value.", schema: schema.CreatedKey },
      },
      errors: ["SCOPE_ESCALATION", "KEY_NAME_TAKEN", "IDEMPOTENCY_CONFLICT"],
      handle: ({ body, headers, credential }) => create(host, body, headers, credential),
    }),
    defineRoute({
      method: "GET",
      path: "/v1/api-keys/:id",
      tag: TAG,
      summary: "Read a key",
      description:
        "A key without `keys:manage` sees only itself. A key that is bound to an agent sees the keys of that agent.",
      scope: host.scopes,
      params: schema.IdParams,
      responses: { 200: { description: "The key, even if it is revoked or expired.", schema: schema.KeyRecord } },
      errors: ["KEY_NOT_FOUND"],
      async handle({ params, credential }) {
        const key = await host.storage.key(params.id);
        if (key === null || !canSee(credential, key))
          throw new Refusal("KEY_NOT_FOUND", `there is no key ${params.id} that this key may see`);
        return { status: 200, json: renderKey(key) };
      },
    }),
    defineRoute({
      method: "DELETE",
      path: "/v1/api-keys/:id",
      tag: TAG,
      summary: "Revoke a key",
      description: "Cancels its actions that are pending, allowed or approved.",
      scope: "keys:manage",
      params: schema.IdParams,
      responses: { 200: { description: "The revoked key.", schema: schema.KeyRecord } },
      errors: ["KEY_NOT_FOUND", "LAST_ADMIN_KEY", "SCOPE_ESCALATION"],
      handle: ({ params, credential }) => revoke(host, params.id, credential),
    }),
  ];
}

/**
 * Returns true if the credential can manage the key. A credential that is bound or limited to agents can manage only
 * keys of those agents.
 */
function canManage(credential: Credential, key: Pick<KeyRow, "agent_id">): boolean {
  const { agent_id } = credential.key;
  if (agent_id !== null) return key.agent_id === agent_id;
  return key.agent_id === null || canAdministerAgent(credential, key.agent_id);
}

function canSee(credential: Credential, key: KeyRow): boolean {
  return credential.hasScope("keys:manage") ? canManage(credential, key) : key.id === credential.key.id;
}

async function list(host: CoreHost, query: schema.ListQuery, credential: Credential): Promise<Reply> {
  const now = host.clock();
  const { status, agent_id, principal } = query;
  const all = (await host.storage.keys()).filter(
    (key) =>
      canSee(credential, key) &&
      (status === undefined || (status === "live") === isLive(key, now)) &&
      (agent_id === undefined || key.agent_id === agent_id) &&
      (principal === undefined || principalOfKey(key) === principal),
  );
  const { rows, next_cursor } = slicePage("api_keys", all, query);
  return {
    status: 200,
    json: { api_keys: rows.map(renderKey), next_cursor },
    headers: nextLink("/v1/api-keys", query, next_cursor),
  };
}

async function create(
  host: CoreHost,
  requestedKey: schema.KeyBody,
  headers: Headers,
  credential: Credential,
): Promise<Reply> {
  const preset = requestedKey.preset ?? (requestedKey.scopes === undefined ? "agent" : undefined);
  const scopes = [
    ...new Set<Scope>([...(preset === undefined ? [] : SCOPE_PRESETS[preset]), ...(requestedKey.scopes ?? [])]),
  ];
  if (scopes.length === 0) {
    throw new Refusal("VALIDATION_FAILED", "a key needs a preset or at least one scope", {
      errors: [{ pointer: "/scopes", detail: `one or more of ${host.scopes.join(", ")}` }],
    });
  }
  const owner = requestedOwner(requestedKey, credential);
  const expiresAt = typeof requestedKey.expires_at === "string" ? parseRfc3339(requestedKey.expires_at) : null;
  if (expiresAt !== null && expiresAt <= host.clock()) {
    throw new Refusal("VALIDATION_FAILED", `expires_at ${requestedKey.expires_at as string} has already passed`, {
      errors: [{ pointer: "/expires_at", detail: "a time in the future" }],
    });
  }
  const minted = host.keys.mint({
    name: requestedKey.name,
    scopes,
    agent_id: requestedKey.agent_id ?? null,
    owner,
    expires_at: expiresAt,
  });
  const call = readIdempotentCall(headers, "POST /v1/api-keys", requestedKey);
  const { row, replayed } = await host.ledger.transact(async (tx) => {
    const caller = await confirmCredential(tx, credential, "keys:manage");
    const earlier = await findCreatedResource(tx, caller, call);
    const earlierKey = earlier === null ? null : await tx.key(earlier);
    if (earlierKey !== null) return { row: earlierKey, replayed: true };
    const lacking = scopes.filter((scope) => !caller.hasScope(scope));
    if (lacking.length > 0)
      throw new Refusal("SCOPE_ESCALATION", `this key does not have ${lacking.join(", ")}, so it cannot grant it`);
    if (!canManage(caller, { agent_id: requestedKey.agent_id ?? null })) {
      const bound = caller.key.agent_id;
      throw new Refusal(
        "SCOPE_ESCALATION",
        bound === null
          ? `the groups of this key or user do not cover the agent "${requestedKey.agent_id}"; ask someone whose groups cover it`
          : `this key is bound to the agent "${bound}"; keys that it makes must be bound to it too`,
      );
    }
    const namesake = (await tx.keys()).find((key) => key.name === requestedKey.name && isLive(key, tx.now));
    if (namesake !== undefined)
      throw new Refusal(
        "KEY_NAME_TAKEN",
        canSee(caller, namesake)
          ? `the live key ${namesake.id} is named "${requestedKey.name}"; choose another name, or revoke that key first`
          : `another live key is named "${requestedKey.name}"; choose another name`,
      );
    const newKey = { ...minted.key, owner: findOwner(host, tx, owner, requestedKey, scopes) };
    const created = tx.recordKey("created", newKey, toActor(caller.key, caller.principal));
    await recordCreatedResource(tx, caller, call, created.id);
    return { row: created, replayed: false };
  });
  return {
    status: replayed ? 200 : 201,
    json: { ...renderKey(row), key: replayed ? null : minted.value, warnings: warningsOf(host, row) },
    headers: { Location: `/v1/api-keys/${row.id}`, ...(replayed ? REPLAYED_HEADERS : {}) },
  };
}

/**
 * Returns the reference to the owner of a new key: the owner in the body, or else the user who creates the key or the
 * owner of the key that creates it. Null for a key without an owner.
 */
function requestedOwner(
  { owner }: schema.KeyBody,
  { session, key }: Pick<Credential, "session" | "key">,
): string | null {
  if (owner !== undefined) return owner;
  return session === undefined ? key.owner : principalOfUser(session.user.id);
}

/**
 * Returns the owner in the form that the key stores. Throws VALIDATION_FAILED if the owner is not an active user whose
 * roles allow the scopes, or if the key needs an owner and has none.
 */
function findOwner(
  host: CoreHost,
  { state }: LedgerTransaction,
  requested: string | null,
  { agent_id = null }: schema.KeyBody,
  scopes: readonly Scope[],
): string | null {
  if (requested === null) {
    // Until the first user has enrolled, each key stands for a person.
    if (hasScope(scopes, "approvals:decide") && host.keys.isUnknownOwner(null))
      throw ownerFault(
        `a key that may approve (${scopes.includes("admin") ? "admin" : "approvals:decide"}) needs an owner, because votes are counted by person`,
        REFERENCE_FORMS,
      );
    return null;
  }
  const found = findReferredUser(state(userState), requested);
  if ("fault" in found)
    throw ownerFault(
      `the owner of a key must be an active user: ${found.fault}. For a key of an agent without a person behind it, set agent_id, and set owner to null`,
      REFERENCE_FORMS,
    );
  const { id, name, roles } = found.user;
  const lacking = scopesBeyondOwner(roles, { agent_id, scopes });
  if (lacking.length > 0)
    throw ownerFault(
      `the roles of "${name}" (user:${id}) do not include ${lacking.join(", ")}, and a key has at most the rights of its owner; give the user a role with these scopes first`,
      "a user with these rights",
    );
  return principalOfUser(id);
}

function ownerFault(detail: string, expected: string): Refusal {
  return new Refusal("VALIDATION_FAILED", detail, { errors: [{ pointer: "/owner", detail: expected }] });
}

function warningsOf(host: CoreHost, { scopes, agent_id }: KeyRow): string[] {
  const warnings: string[] = [];
  if (canCreateApprovers(scopes))
    warnings.push(
      "this key may approve and create keys that approve; its votes and theirs count as one person's. If possible, give keys:manage and approvals:decide to different people",
    );
  if (scopes.includes("actions:submit") && agent_id === null && host.config.agents === "bound")
    warnings.push("this key is bound to no agent and cannot submit; give it an agent_id");
  return warnings;
}

async function revoke(host: CoreHost, id: string, credential: Credential): Promise<Reply> {
  const { row, finish } = await host.ledger.transact(async (tx) => {
    const caller = await confirmCredential(tx, credential, "keys:manage");
    const key = await tx.key(id);
    if (key === null || key.revoked_at !== null || !canManage(caller, key))
      throw new Refusal("KEY_NOT_FOUND", `there is no live key ${id} that this key may see`);
    // A key that is bound to no agent can have rights beyond the caller's limits, so a caller with limits revokes only
    // their own keys. The same owner is proof only for a session, because any key can create a key with limits in
    // another owner's name.
    const isTheirs = caller.session !== undefined && principalOfKey(key) === caller.principal;
    const isOwn = isTheirs || [key.id, key.created_by].includes(caller.key.id);
    if (key.agent_id === null && !isOwn && !("all" in caller.limits))
      throw new Refusal(
        "SCOPE_ESCALATION",
        "your groups limit your rights, and the key of another person can have rights beyond these limits; ask an admin without limits to revoke it",
      );
    const unreachable = key.scopes.filter((scope) => !caller.hasScope(scope as Scope));
    if (unreachable.length > 0)
      throw new Refusal(
        "SCOPE_ESCALATION",
        `the key has ${unreachable.join(", ")}, which this key does not have; a key can only revoke keys that it could have created`,
      );
    if (hasScope(key.scopes, "admin")) {
      const others = (await tx.keys()).filter((other) => other.id !== id && other.expires_at === null);
      const rights = await Promise.all(others.map((other) => host.keys.rightsOf(tx, other.id)));
      if (!rights.some((each) => each?.hasScope("admin") === true))
        throw new Refusal(
          "LAST_ADMIN_KEY",
          `"${key.name}" is the last admin key that does not expire; create another admin key first: POST /v1/api-keys with the preset "admin"`,
        );
    }
    const cancelRest = await revokeKey(host, tx, key, toActor(caller.key, caller.principal));
    return { row: { ...key, revoked_at: tx.now }, finish: cancelRest };
  });
  await finish();
  return { status: 200, json: renderKey(row) };
}

function isLive(key: KeyRow, now: number): boolean {
  return key.revoked_at === null && (key.expires_at === null || key.expires_at > now);
}

const toTimeOrNull = (ms: number | null): string | null => (ms === null ? null : toRfc3339(ms));

function renderKey(key: KeyRow): schema.KeyRecord {
  const { id, name, prefix, scopes, agent_id, owner, created_by } = key;
  return {
    id,
    name,
    prefix,
    scopes,
    agent_id,
    owner,
    created_by,
    created_at: toRfc3339(key.created_at),
    expires_at: toTimeOrNull(key.expires_at),
    revoked_at: toTimeOrNull(key.revoked_at),
    last_used_at: toTimeOrNull(key.last_used_at),
  };
}

declare module "../../src/contract/resource.ts" {
  interface FeatureRoutes {
    "api-keys": typeof routes;
  }
}
