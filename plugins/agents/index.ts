/** Agents: who may ask at all, and with which tools. A change holds from the next submission on, on every process. */
import { Refusal } from "../../src/contract/errors.ts";
import type { Credential, Host, LedgerTransaction } from "../../src/contract/host.ts";
import type { Reply, RequestContext, Route } from "../../src/contract/resource.ts";
import type { AgentChange, AgentRow } from "../../src/contract/storage.ts";
import { actorOf } from "../../src/domain/actor.ts";
import { canonicalText } from "../../src/domain/canonical.ts";
import type { AgentEntry } from "../../src/domain/entries.ts";
import { sha256Hex, utf8 } from "../../src/domain/hash.ts";
import type { JsonObject, JsonValue } from "../../src/domain/json.ts";
import { toRfc3339 } from "../../src/domain/time.ts";
import { definePlugin } from "../../src/plugin.ts";
import { confirmed } from "../../src/toolkit/authority.ts";
import { createdEarlier, idempotentCall, rememberCreated, REPLAYED } from "../../src/toolkit/idempotency.ts";
import { cutPage, decodeSeqCursor, DEFAULT_LIMIT, nextLink } from "../../src/toolkit/paging.ts";
import { assertMatch, IF_MATCH } from "../../src/toolkit/preconditions.ts";
import * as schema from "./schemas.ts";

const MAX_METADATA = 16 * 1024;
/** Bytes as JSON: the list stands in every decision about the agent, whose entry has a size (src/domain/policy/bounds.ts). */
const MAX_TOOLS = 13_200;
const TAG = "agents";

export default definePlugin({ name: "agents", setup: (host) => ({ routes: routes(host) }) });

function routes(host: Host): Route[] {
  async function list({ query, credential }: RequestContext): Promise<Reply> {
    const asked = query as schema.ListQuery;
    const { visibility } = credential as Credential;
    // A bound key learns nothing of the other agents.
    if ("agent_id" in visibility) {
      const own = await host.storage.agent(visibility.agent_id);
      const fits = own !== null && asked.cursor === undefined && (asked.offset ?? 0) === 0 && (asked.status === undefined || (asked.status === "suspended") === (own.suspended_at !== null));
      return { status: 200, json: { agents: own !== null && fits ? [show(own)] : [], next_cursor: null } };
    }
    const limit = asked.limit ?? DEFAULT_LIMIT;
    const found = await host.storage.agents({
      limit: limit + 1,
      ...(asked.status === undefined ? {} : { suspended: asked.status === "suspended" }),
      ...(asked.cursor === undefined ? {} : { before_seq: decodeSeqCursor("agents", asked.cursor) }),
      ...(asked.offset === undefined ? {} : { offset: asked.offset }),
    });
    const { rows, next_cursor } = cutPage("agents", found, limit, (row) => row.registered_seq);
    return { status: 200, json: { agents: rows.map(show), next_cursor }, headers: nextLink("/v1/agents", asked, next_cursor) };
  }

  async function get({ params, credential }: RequestContext): Promise<Reply> {
    const id = params["id"] as string;
    const { visibility } = credential as Credential;
    const row = "agent_id" in visibility && visibility.agent_id !== id ? null : await host.storage.agent(id);
    if (row === null) throw unknown(id);
    return answer(row, 200);
  }

  async function register({ body, headers, credential }: RequestContext): Promise<Reply> {
    const wanted = body as schema.AgentBody;
    const metadata = metadataText(wanted.metadata);
    assertToolsFit(wanted.allowed_tools);
    const call = idempotentCall(headers, "POST /v1/agents", body);
    const { row, replayed } = await host.ledger.submit(async (tx) => {
      const who = await writing(tx, credential);
      const earlier = await createdEarlier(tx, who, call);
      const taken = await tx.agent(earlier ?? wanted.id);
      if (earlier !== null && taken !== null) return { row: taken, replayed: true };
      if (taken !== null) throw new Refusal("AGENT_ID_TAKEN", `the agent "${wanted.id}" is registered; change it with PATCH /v1/agents/${encodeURIComponent(wanted.id)}`);
      const made: AgentRow = {
        id: wanted.id, name: wanted.name ?? wanted.id, description: wanted.description ?? null, allowed_tools: wanted.allowed_tools ?? null, metadata,
        suspended_at: null, suspended_reason: null, version: 1, registered_seq: 0, created_by: who.key.id, created_at: tx.now, updated_at: tx.now,
      };
      const { seq } = record(tx, "registered", made, who);
      await tx.insertAgent({ ...made, registered_seq: seq });
      await rememberCreated(tx, who, call, made.id);
      return { row: made, replayed: false };
    });
    const reply = answer(row, replayed ? 200 : 201);
    return { ...reply, headers: { ...reply.headers, Location: `/v1/agents/${encodeURIComponent(row.id)}`, ...(replayed ? REPLAYED : {}) } };
  }

  /** One compare-and-set with its entry. `plan` answers what changes, or null when there is nothing to change. */
  async function change(context: RequestContext, kind: AgentEntry["change"], plan: (row: AgentRow, now: number) => Omit<AgentChange, "updated_at"> | null): Promise<Reply> {
    const id = context.params["id"] as string;
    const row = await host.ledger.submit(async (tx) => {
      const who = await writing(tx, context.credential);
      const before = await tx.agent(id);
      if (before === null) throw unknown(id);
      assertMatch(context.headers, etagOf(before));
      const planned = plan(before, tx.now);
      if (planned === null) return before;
      const after: AgentRow = { ...before, ...planned, version: before.version + 1, updated_at: tx.now };
      await tx.updateAgent(id, before.version, { ...planned, updated_at: tx.now });
      record(tx, kind, after, who);
      return after;
    });
    return answer(row, 200);
  }

  const update = (context: RequestContext): Promise<Reply> => {
    const { metadata, ...rest } = context.body as schema.AgentPatch;
    assertToolsFit(rest.allowed_tools);
    return change(context, "updated", () => ({ ...rest, ...(metadata === undefined ? {} : { metadata: metadataText(metadata) }) }));
  };
  const suspend = (context: RequestContext): Promise<Reply> => {
    const { reason } = context.body as schema.SuspendBody;
    return change(context, "suspended", (row, now) => (row.suspended_at !== null ? null : { suspended_at: now, suspended_reason: reason ?? null }));
  };
  const resume = (context: RequestContext): Promise<Reply> =>
    change(context, "resumed", (row) => (row.suspended_at === null ? null : { suspended_at: null, suspended_reason: null }));

  const one = { description: "The agent.", schema: schema.AgentRecord };
  return [
    {
      method: "GET", path: "/v1/agents", tag: TAG, summary: "List registered agents, newest first", scope: "agents:read", query: schema.ListQuery,
      description: "A key that is bound to an agent sees that one alone.",
      responses: { 200: { description: "A page.", schema: schema.AgentList } }, errors: ["INVALID_CURSOR"], handle: list,
    },
    {
      method: "POST", path: "/v1/agents", tag: TAG, summary: "Register an agent", scope: "agents:write", body: schema.AgentBody, idempotent: true,
      responses: { 200: { ...one, description: "It was registered by an earlier request with this Idempotency-Key." }, 201: { ...one, description: "Registered." } },
      errors: ["AGENT_ID_TAKEN", "AGENT_MISMATCH", "IDEMPOTENCY_CONFLICT"], handle: register,
    },
    {
      method: "GET", path: "/v1/agents/:id", tag: TAG, summary: "Look at an agent", scope: "agents:read", params: schema.AgentParams,
      responses: { 200: one }, errors: ["AGENT_NOT_FOUND"], handle: get,
    },
    {
      method: "PATCH", path: "/v1/agents/:id", tag: TAG, summary: "Change an agent", scope: "agents:write", params: schema.AgentParams, headers: IF_MATCH, body: schema.AgentPatch,
      description: "`If-Match` with the `ETag` that was seen refuses the change when another came first.",
      responses: { 200: one }, errors: ["AGENT_NOT_FOUND", "AGENT_MISMATCH", "PRECONDITION_FAILED"], handle: update,
    },
    {
      method: "POST", path: "/v1/agents/:id/suspend", tag: TAG, summary: "Deny everything an agent submits", scope: "agents:write", params: schema.AgentParams, headers: IF_MATCH, body: schema.SuspendBody, bodyOptional: true,
      description: "From the next submission on, with the reason code AGENT_SUSPENDED. What was allowed before stays allowed.",
      responses: { 200: one }, errors: ["AGENT_NOT_FOUND", "AGENT_MISMATCH", "PRECONDITION_FAILED"], handle: suspend,
    },
    {
      method: "POST", path: "/v1/agents/:id/resume", tag: TAG, summary: "End a suspension", scope: "agents:write", params: schema.AgentParams, headers: IF_MATCH,
      responses: { 200: one }, errors: ["AGENT_NOT_FOUND", "AGENT_MISMATCH", "PRECONDITION_FAILED"], handle: resume,
    },
  ];
}

/** A key that is bound to an agent could otherwise widen its own tools, or end its own suspension. */
async function writing(tx: LedgerTransaction, credential: Credential | null): Promise<Credential> {
  const who = await confirmed(tx, credential, "agents:write");
  if (who.key.agent_id !== null) throw new Refusal("AGENT_MISMATCH", `the key "${who.key.name}" is bound to the agent "${who.key.agent_id}"; agents are changed with a key that is bound to none`);
  return who;
}

function record(tx: LedgerTransaction, change: AgentEntry["change"], row: AgentRow, who: Credential): { seq: number } {
  const { id, name, description, allowed_tools, suspended_reason, version } = row;
  const agent: JsonObject = { id, name, description, allowed_tools, metadata: sha256Hex(utf8(row.metadata)), suspended: row.suspended_at !== null, suspended_reason, version };
  const appended = tx.record({ type: "agent", v: 1, at: toRfc3339(tx.now), change, agent, by: actorOf(who.key, who.principal) });
  tx.bumpEpoch();
  return appended;
}

function metadataText(metadata: Record<string, unknown> | undefined): string {
  const text = canonicalText((metadata ?? {}) as JsonValue);
  if (text.length > MAX_METADATA) throw new Refusal("VALIDATION_FAILED", `metadata takes at most ${MAX_METADATA} characters as JSON, and this has ${text.length}`, { errors: [{ pointer: "/metadata", detail: `at most ${MAX_METADATA} characters` }] });
  return text;
}

function assertToolsFit(tools: string[] | null | undefined): void {
  const size = utf8(canonicalText(tools ?? null)).length;
  if (size > MAX_TOOLS) throw new Refusal("VALIDATION_FAILED", `allowed_tools takes at most ${MAX_TOOLS} bytes as JSON, and this has ${size}; use globs`, { errors: [{ pointer: "/allowed_tools", detail: `at most ${MAX_TOOLS} bytes` }] });
}

function unknown(id: string): Refusal {
  return new Refusal("AGENT_NOT_FOUND", `no agent "${id}" is registered that this key may see`);
}

function etagOf(row: AgentRow): string {
  return `"${row.version}"`;
}

function answer(row: AgentRow, status: number): Reply {
  return { status, json: show(row), headers: { ETag: etagOf(row) } };
}

function show(row: AgentRow): schema.AgentRecord {
  const { id, name, description, allowed_tools, suspended_reason, version, created_by } = row;
  return {
    id, name, description, allowed_tools,
    metadata: JSON.parse(row.metadata) as Record<string, unknown>,
    status: row.suspended_at === null ? "active" : "suspended",
    suspended_at: row.suspended_at === null ? null : toRfc3339(row.suspended_at),
    suspended_reason, version, created_by,
    created_at: toRfc3339(row.created_at),
    updated_at: toRfc3339(row.updated_at),
  };
}
