/** API keys: make, list, revoke. A change holds from the next request on. */
import { Type, type Static } from "@sinclair/typebox";
import { Refusal, type ErrorCode } from "../../src/contract/errors.ts";
import type { Credential, Host, LedgerTransaction } from "../../src/contract/host.ts";
import type { Reply, RequestContext } from "../../src/contract/resource.ts";
import type { KeyRow } from "../../src/contract/storage.ts";
import { actorOf } from "../../src/domain/actor.ts";
import type { KeyEntry } from "../../src/domain/entries.ts";
import { isOwner } from "../../src/domain/owner.ts";
import { PRESETS, SCOPES, holds, type Preset, type Scope } from "../../src/domain/scopes.ts";
import { parseRfc3339, toRfc3339 } from "../../src/domain/time.ts";
import { definePlugin } from "../../src/plugin.ts";
import { createdEarlier, idempotentCall, rememberCreated, REPLAYED } from "../../src/toolkit/idempotency.ts";
import { nextLink, PAGE_QUERY, pageOf } from "../../src/toolkit/paging.ts";

const NullableString = Type.Union([Type.String(), Type.Null()]);
const Label = (description: string) => Type.String({ minLength: 1, maxLength: 100, pattern: "^[^\\u0000-\\u001f\\u007f]*$", description });

const KeyBody = Type.Object(
  {
    name: Label("Unique among live keys."),
    preset: Type.Optional(Type.Union(Object.keys(PRESETS).map((name) => Type.Literal(name as Preset)), { description: "Scopes by purpose; joined with `scopes`." })),
    scopes: Type.Optional(Type.Array(Type.Union(SCOPES.map((scope) => Type.Literal(scope))), { maxItems: SCOPES.length, uniqueItems: true })),
    agent_id: Type.Optional(Type.Union([Label("Agent that the key is bound to: it submits only as that agent and sees only its actions."), Type.Null()])),
    owner: Type.Optional(Type.Union([Label("Person or team behind the key. Keys of one owner count as one approver, and cannot approve each other's actions; capitals and spaces make no other owner."), Type.Null()])),
    expires_at: Type.Optional(Type.Union([Type.String({ format: "date-time" }), Type.Null()])),
  },
  { additionalProperties: false, examples: [{ name: "support-bot", preset: "agent", agent_id: "support-bot" }] },
);
type KeyBody = Static<typeof KeyBody>;

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
  last_used_at: Type.Union([Type.String({ format: "date-time" }), Type.Null()], { description: "To within two minutes; null when never." }),
};
const KeyRecord = Type.Object(fields, { title: "ApiKey", additionalProperties: false });
const CreatedKey = Type.Object(
  { ...fields, key: Type.Union([Type.String(), Type.Null()], { description: "The value. It is shown this once and kept nowhere; null when the same Idempotency-Key is sent again." }) },
  { additionalProperties: false },
);
const KeyList = Type.Object({ api_keys: Type.Array(KeyRecord), next_cursor: Type.Union([Type.String(), Type.Null()]) }, { additionalProperties: false });
const IdParams = Type.Object({ id: Type.String({ format: "uuid" }) }, { additionalProperties: false });

const ListQuery = Type.Object(
  { status: Type.Optional(Type.Union([Type.Literal("live"), Type.Literal("ended")], { description: "`ended`: revoked or expired." })), ...PAGE_QUERY },
  { additionalProperties: false },
);

const AUTH: ErrorCode[] = ["MISSING_CREDENTIAL", "INVALID_CREDENTIAL", "INSUFFICIENT_SCOPE"];
const TAG = "api-keys";

export default definePlugin({
  name: "api-keys",
  setup: (host) => ({
    routes: [
      {
        method: "GET", path: "/v1/api-keys", tag: TAG, summary: "List keys, newest first", scope: "keys:manage", query: ListQuery,
        responses: { 200: { description: "A page; revoked and expired ones included.", schema: KeyList } }, errors: [...AUTH, "INVALID_CURSOR", "STORAGE_UNAVAILABLE"],
        handle: (context) => list(host, context),
      },
      {
        method: "POST", path: "/v1/api-keys", tag: TAG, summary: "Make a key", scope: "keys:manage", body: KeyBody, idempotent: true,
        responses: { 200: { description: "It was made by an earlier request with this Idempotency-Key; the value is not shown again.", schema: CreatedKey }, 201: { description: "The key, with its value this once.", schema: CreatedKey } },
        errors: [...AUTH, "SCOPE_ESCALATION", "KEY_NAME_TAKEN", "IDEMPOTENCY_CONFLICT", "VALIDATION_FAILED", "STORAGE_UNAVAILABLE"],
        handle: (context) => create(host, context),
      },
      {
        method: "DELETE", path: "/v1/api-keys/:id", tag: TAG, summary: "Revoke a key", scope: "keys:manage", params: IdParams,
        responses: { 200: { description: "The revoked key.", schema: KeyRecord } }, errors: [...AUTH, "KEY_NOT_FOUND", "LAST_ADMIN_KEY", "STORAGE_UNAVAILABLE"],
        handle: (context) => revoke(host, context),
      },
    ],
  }),
});

async function list(host: Host, { query }: RequestContext): Promise<Reply> {
  const asked = query as Static<typeof ListQuery>;
  const now = host.clock();
  const all = (await host.storage.keys()).filter((key) => asked.status === undefined || (asked.status === "live") === isLive(key, now));
  const { rows, next_cursor } = pageOf("api_keys", all, asked);
  return { status: 200, json: { api_keys: rows.map(show), next_cursor }, headers: nextLink("/v1/api-keys", asked, next_cursor) };
}

async function create(host: Host, { body, headers, credential }: RequestContext): Promise<Reply> {
  const wanted = body as KeyBody;
  const scopes = [...new Set<Scope>([...(wanted.preset === undefined ? [] : PRESETS[wanted.preset]), ...(wanted.scopes ?? [])])];
  if (scopes.length === 0) {
    throw new Refusal("VALIDATION_FAILED", "a key needs a preset or at least one scope", { errors: [{ pointer: "/scopes", detail: `one or more of ${SCOPES.join(", ")}` }] });
  }
  if (typeof wanted.owner === "string" && !isOwner(wanted.owner)) {
    throw new Refusal("VALIDATION_FAILED", `the owner ${JSON.stringify(wanted.owner)} has nothing visible in it or is too long; give the name of a person or team, or leave it out`, {
      errors: [{ pointer: "/owner", detail: "a visible name" }],
    });
  }
  const expiresAt = typeof wanted.expires_at === "string" ? parseRfc3339(wanted.expires_at) : null;
  if (expiresAt !== null && expiresAt <= host.clock()) {
    throw new Refusal("VALIDATION_FAILED", `expires_at ${wanted.expires_at as string} has passed already`, { errors: [{ pointer: "/expires_at", detail: "a time in the future" }] });
  }
  const minted = host.keys.mint({
    name: wanted.name, scopes, agent_id: wanted.agent_id ?? null, owner: wanted.owner ?? null,
    created_by: (credential as Credential).key.id, expires_at: expiresAt, now: host.clock(),
  });
  const call = idempotentCall(headers, "POST /v1/api-keys", body);
  const { row, replayed } = await host.ledger.submit(async (tx) => {
    const who = await managing(tx, credential as Credential);
    const earlier = await createdEarlier(tx, who, call);
    const known = earlier === null ? null : await tx.key(earlier);
    if (known !== null) return { row: known, replayed: true };
    const lacking = scopes.filter((scope) => !who.holds(scope));
    if (lacking.length > 0) throw new Refusal("SCOPE_ESCALATION", `this key does not hold ${lacking.join(", ")} and cannot give it away`);
    if (who.key.agent_id !== null && wanted.agent_id !== who.key.agent_id) {
      throw new Refusal("SCOPE_ESCALATION", `this key is bound to the agent "${who.key.agent_id}"; keys that it makes must be bound to it too`);
    }
    const namesake = (await tx.keys()).find((key) => key.name === wanted.name && isLive(key, tx.now));
    if (namesake !== undefined) throw new Refusal("KEY_NAME_TAKEN", `the live key ${namesake.id} is named "${wanted.name}"; choose another name or revoke that one first`);
    const made = { ...minted.row, created_at: tx.now };
    await tx.insertKey(made);
    tx.record(entryOf(made, "created", tx.now, who));
    tx.bumpEpoch();
    await rememberCreated(tx, who, call, made.id);
    return { row: made, replayed: false };
  });
  return {
    status: replayed ? 200 : 201,
    json: { ...show(row), key: replayed ? null : minted.value },
    headers: { Location: `/v1/api-keys/${row.id}`, ...(replayed ? REPLAYED : {}) },
  };
}

async function revoke(host: Host, { params, credential }: RequestContext): Promise<Reply> {
  const id = params["id"] as string;
  const row = await host.ledger.submit(async (tx) => {
    const who = await managing(tx, credential as Credential);
    const key = await tx.key(id);
    if (key === null || key.revoked_at !== null) throw new Refusal("KEY_NOT_FOUND", `there is no live key ${id}`);
    const unreachable = key.scopes.filter((scope) => !who.holds(scope as Scope));
    if (unreachable.length > 0) throw new Refusal("SCOPE_ESCALATION", `the key holds ${unreachable.join(", ")}, which this key does not; a key revokes only what it could have made`);
    if (isAdmin(key)) {
      const others = (await tx.keys()).filter((other) => other.id !== id && isAdmin(other) && isLive(other, tx.now) && other.expires_at === null);
      if (others.length === 0) throw new Refusal("LAST_ADMIN_KEY", `"${key.name}" is the last admin key that does not expire; make another one first: POST /v1/api-keys with the preset "admin"`);
    }
    await tx.revokeKey(id, tx.now);
    tx.record(entryOf(key, "revoked", tx.now, who));
    tx.bumpEpoch();
    return { ...key, revoked_at: tx.now };
  });
  return { status: 200, json: show(row) };
}

async function managing(tx: LedgerTransaction, credential: Credential): Promise<Credential> {
  const who = await tx.confirm(credential);
  if (!who.holds("keys:manage")) throw new Refusal("INSUFFICIENT_SCOPE", `the key "${who.key.name}" lacks the scope keys:manage`);
  return who;
}

function isAdmin(key: KeyRow): boolean {
  return holds(key.scopes, "admin");
}

function isLive(key: KeyRow, now: number): boolean {
  return key.revoked_at === null && (key.expires_at === null || key.expires_at > now);
}

function entryOf(key: KeyRow, change: KeyEntry["change"], now: number, who: Credential): KeyEntry {
  return {
    type: "api_key", v: 1, at: toRfc3339(now), change,
    key: { id: key.id, name: key.name, hash: key.hash, scopes: key.scopes, agent_id: key.agent_id, owner: key.owner, expires_at: time(key.expires_at) },
    by: actorOf(who.key, who.principal),
  };
}

const time = (ms: number | null): string | null => (ms === null ? null : toRfc3339(ms));

function show(key: KeyRow): Static<typeof KeyRecord> {
  const { id, name, prefix, scopes, agent_id, owner, created_by } = key;
  return { id, name, prefix, scopes, agent_id, owner, created_by, created_at: toRfc3339(key.created_at), expires_at: time(key.expires_at), revoked_at: time(key.revoked_at), last_used_at: time(key.last_used_at) };
}
