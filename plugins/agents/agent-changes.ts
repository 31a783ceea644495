/** Changes agents over the API. Each change is a compare-and-set in the ledger transaction that records its entry. */
import {
  type AgentEntry,
  assertAgentUnaltered,
  canonicalText,
  canAdministerAgent,
  confirmCredential,
  type CoreHost,
  findCreatedResource,
  foldName,
  type IdempotentCall,
  type JsonValue,
  type LedgerTransaction,
  recordCreatedResource,
  registeredAgentState,
  toActor,
  utf8,
} from "../../src/core.ts";
import { assertIfMatch, type Credential, Refusal } from "../../src/plugin.ts";
import type { AgentRow } from "../../src/storage/index.ts";
import type { AgentBody } from "./schemas.ts";

const MAX_METADATA = 16 * 1024;
/**
 * Maximum size of the tool list as JSON, in bytes. Every decision entry of the agent contains the list, and entries
 * have a limit (src/domain/policy/parse/bounds.ts).
 */
const MAX_TOOLS = 13_200;

export function registerAgent(
  host: CoreHost,
  credential: Credential,
  agentBody: AgentBody,
  call: IdempotentCall | null,
): Promise<{ row: AgentRow; replayed: boolean }> {
  const metadata = serializeMetadata(agentBody.metadata);
  assertAllowedToolsSize(agentBody.allowed_tools);
  return host.ledger.transact(async (tx) => {
    const caller = await confirmWriter(tx, credential);
    const earlier = await findCreatedResource(tx, caller, call);
    const existing = await tx.agent(earlier ?? agentBody.id);
    if (earlier !== null && existing !== null) return { row: existing, replayed: true };
    if (!canAdministerAgent(caller, agentBody.id))
      throw new Refusal("AGENT_MISMATCH", `the groups of this key or user do not cover the agent "${agentBody.id}"`);
    // Ignore case when comparing names, so that one agent has one registration.
    const taken = tx.state(registeredAgentState).get(foldName(agentBody.id))?.id ?? existing?.id;
    if (taken !== undefined)
      throw new Refusal(
        "AGENT_ID_TAKEN",
        taken === agentBody.id
          ? `the agent "${taken}" is registered; change it with PATCH /v1/agents/${encodeURIComponent(taken)}`
          : `the agent "${agentBody.id}" is registered as "${taken}"; names are compared without regard to case`,
      );
    const agent = {
      id: agentBody.id,
      name: agentBody.name ?? agentBody.id,
      description: agentBody.description ?? null,
      allowed_tools: agentBody.allowed_tools ?? null,
      metadata,
      suspended_at: null,
      suspended_reason: null,
      version: 1,
    };
    const row = tx.recordAgent("registered", agent, toActor(caller.key, caller.principal));
    await recordCreatedResource(tx, caller, call, row.id);
    return { row, replayed: false };
  });
}

export function changeAgent(
  host: CoreHost,
  request: ChangeRequest,
  kind: AgentEntry["change"],
  plan: Plan,
): Promise<AgentRow> {
  return host.ledger.transact(async (tx) => (await change(tx, request, kind, plan)).row);
}

interface ChangeRequest {
  params: { id: string };
  headers: Headers;
  credential: Credential;
}

/** Returns the change, or null if there is none. */
type Plan = (row: AgentRow, now: number) => Partial<AgentRow> | null;

async function change(
  tx: LedgerTransaction,
  { params, headers, credential }: ChangeRequest,
  kind: AgentEntry["change"],
  plan: Plan,
): Promise<{ row: AgentRow; caller: Credential }> {
  const caller = await confirmWriter(tx, credential);
  const before = await findAgent(tx, caller, params.id);
  if (before === null) throw agentNotFoundRefusal(params.id);
  assertAgentUnaltered(tx, before);
  assertIfMatch(headers, agentEtag(before));
  const planned = plan(before, tx.now);
  if (planned === null) return { row: before, caller };
  const after = { ...before, ...planned, version: before.version + 1 };
  return { row: tx.recordAgent(kind, after, toActor(caller.key, caller.principal)), caller };
}

/**
 * Suspends the agent and cancels its open actions, in as many transactions as needed. Repeat the request to continue
 * after a crash.
 */
export async function suspendAgent(host: CoreHost, request: ChangeRequest, reason: string | null): Promise<AgentRow> {
  const first = await host.ledger.transact(async (tx) => {
    const { row, caller } = await change(tx, request, "suspended", (before, now) =>
      before.suspended_at !== null ? null : { suspended_at: now, suspended_reason: reason },
    );
    for (const reaction of host.reactions) reaction.agentSuspended?.(tx, row.id, toActor(caller.key, caller.principal));
    const why = cancellationCause(row, caller);
    return { row, why, more: await host.openActionCanceller.cancelPage(tx, { agent_id: row.id }, why) };
  });
  const { row, why } = first;
  for (let more = first.more; more;)
    more = await host.ledger.transact((tx) => host.openActionCanceller.cancelPage(tx, { agent_id: row.id }, why));
  return row;
}

/**
 * Resumes the agent. First cancels actions that are still open because the process crashed in `suspendAgent`; otherwise
 * they could run after the agent is resumed.
 */
export async function resumeAgent(host: CoreHost, request: ChangeRequest): Promise<AgentRow> {
  for (;;) {
    const row = await host.ledger.transact(async (tx): Promise<AgentRow | null> => {
      const caller = await confirmWriter(tx, request.credential);
      const before = await findAgent(tx, caller, request.params.id);
      if (before !== null && before.suspended_at !== null) {
        assertIfMatch(request.headers, agentEtag(before));
        if (await host.openActionCanceller.cancelPage(tx, { agent_id: before.id }, cancellationCause(before, caller)))
          return null;
      }
      const resumed = await change(tx, request, "resumed", (row) =>
        row.suspended_at === null ? null : { suspended_at: null, suspended_reason: null },
      );
      return resumed.row;
    });
    if (row !== null) return row;
  }
}

function cancellationCause({ id, suspended_reason }: AgentRow, caller: Credential) {
  const comment = `the agent "${id}" was suspended${suspended_reason === null ? "" : `: ${suspended_reason}`}`;
  return { by: toActor(caller.key, caller.principal), comment };
}

/**
 * Confirms the key under the lock. Throws AGENT_MISMATCH for a key that is bound to an agent. Such a key could
 * otherwise extend its agent's tools or end its agent's suspension.
 */
async function confirmWriter(tx: LedgerTransaction, credential: Credential): Promise<Credential> {
  const caller = await confirmCredential(tx, credential, "agents:write");
  if (caller.key.agent_id !== null)
    throw new Refusal(
      "AGENT_MISMATCH",
      `the key "${caller.key.name}" is bound to the agent "${caller.key.agent_id}"; agents are changed with a key that is bound to none`,
    );
  return caller;
}

/** Returns the agent; null if there is none, or if it is outside the limits of the caller's groups. */
async function findAgent(tx: LedgerTransaction, caller: Credential, id: string): Promise<AgentRow | null> {
  return canAdministerAgent(caller, id) ? tx.agent(id) : null;
}

export function serializeMetadata(metadata: Record<string, unknown> | undefined): string {
  const text = canonicalText((metadata ?? {}) as JsonValue);
  if (text.length > MAX_METADATA)
    throw new Refusal(
      "VALIDATION_FAILED",
      `metadata can have at most ${MAX_METADATA} characters as JSON; got ${text.length}`,
      { errors: [{ pointer: "/metadata", detail: `at most ${MAX_METADATA} characters` }] },
    );
  return text;
}

export function assertAllowedToolsSize(tools: string[] | null | undefined): void {
  const size = utf8(canonicalText(tools ?? null)).length;
  if (size > MAX_TOOLS)
    throw new Refusal(
      "VALIDATION_FAILED",
      `allowed_tools can have at most ${MAX_TOOLS} bytes as JSON; got ${size}; use globs`,
      { errors: [{ pointer: "/allowed_tools", detail: `at most ${MAX_TOOLS} bytes` }] },
    );
}

export function agentNotFoundRefusal(id: string): Refusal {
  return new Refusal("AGENT_NOT_FOUND", `no agent "${id}" is registered that this key may see`);
}

export function agentEtag(row: AgentRow): string {
  return `"${row.version}"`;
}
