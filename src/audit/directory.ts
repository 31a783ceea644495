/** Compares every API key and every registered agent with the entries that created and changed them. */
import type { EntryRow } from "../contract/storage.ts";
import { parseEntryTime } from "../domain/time.ts";
import { decodeEntry, type AgentEntry, type ApiKeyEntry, type UserEntry } from "../domain/entries.ts";
import { sha256Hex, utf8 } from "../domain/hash.ts";
import { userOfPrincipal } from "../domain/principals.ts";
import { hasScope, canCreateApprovers } from "../domain/scopes.ts";
import {
  prefixFaults,
  reportDifferences,
  reportUnreadableData,
  forEachConcurrently,
  type AuditedStore,
  type EntryBody,
  type ReportFault,
} from "./report.ts";

const PAGE_SIZE = 200;

/**
 * Compares the keys and agents with their entries. Remembers the positions of entries instead of their content, so
 * memory use does not grow with names and lists.
 */
export class DirectoryAuditor {
  private readonly store: AuditedStore;
  private readonly keyRows = new Map<string, { created: number; revoked_at: number | null }>();
  private readonly agentRows = new Map<string, { registered: number; last: number; suspended_at: number | null }>();
  private readonly users = new Set<string>();
  private warningTexts: string[] = [];

  constructor(store: AuditedStore) {
    this.store = store;
  }

  /** Applies the next entry; call it in order. Throws for an entry that contradicts earlier entries. */
  fold({ seq, type }: Pick<EntryRow, "seq" | "type">, body: EntryBody): void {
    if (type === "api_key") {
      const { change, key, at } = body as unknown as ApiKeyEntry;
      const trail = this.keyRows.get(key.id);
      if (change === "created") this.keyRows.set(key.id, { created: seq, revoked_at: null });
      else if (trail === undefined) throw new RangeError("it revokes a key that no entry created");
      else trail.revoked_at = parseEntryTime(at);
    }
    if (type === "user") {
      this.users.add((body as unknown as UserEntry).user.id);
    }
    if (type === "agent") {
      const { change, agent, at } = body as unknown as AgentEntry;
      const id = agent["id"] as string;
      const trail = this.agentRows.get(id) ?? { registered: seq, last: seq, suspended_at: null };
      trail.last = seq;
      if (change === "suspended") trail.suspended_at = parseEntryTime(at);
      if (change === "resumed") trail.suspended_at = null;
      this.agentRows.set(id, trail);
    }
  }

  async check(reportFault: ReportFault): Promise<void> {
    this.warningTexts = [];
    const each = (noun: string, check: (id: string, reportFault: ReportFault) => Promise<void>) => (id: string) =>
      reportUnreadableData(`${noun} ${id}`, reportFault, () => check(id, prefixFaults(`${noun} ${id}`, reportFault)));
    await forEachConcurrently(
      this.keyRows.keys(),
      each("the API key", (id, report) => this.checkKey(id, report)),
    );
    await forEachConcurrently(
      this.agentRows.keys(),
      each("the agent", (id, report) => this.checkAgent(id, report)),
    );
    for (const { id } of await this.store.keys())
      if (!this.keyRows.has(id)) reportFault(`the API key ${id} is in the store but not in the ledger`);
    for (let before: number | undefined; ;) {
      const rows = await this.store.agents({
        limit: PAGE_SIZE,
        ...(before === undefined ? {} : { before_seq: before }),
      });
      for (const { id } of rows)
        if (!this.agentRows.has(id)) reportFault(`the agent ${id} is in the store but not in the ledger`);
      before = rows.at(-1)?.registered_seq;
      if (before === undefined) return;
    }
  }

  /** Returns observations that are not faults, such as a key without an owner that may approve. */
  warnings(): readonly string[] {
    return this.warningTexts;
  }

  keys(): number {
    return this.keyRows.size;
  }

  agents(): number {
    return this.agentRows.size;
  }

  private async entryAt<T extends ApiKeyEntry | AgentEntry>(seq: number): Promise<T> {
    const [row] = await this.store.entries(seq, seq + 1);
    if (row === undefined) throw new RangeError(`entry ${seq} is missing`);
    return decodeEntry<T>(row.bytes);
  }

  private async checkKey(id: string, reportFault: ReportFault): Promise<void> {
    const trail = this.keyRows.get(id) as { created: number; revoked_at: number | null };
    const row = await this.store.key(id);
    if (row === null) return reportFault("it is in the ledger but not in the store");
    const { key, by, at } = await this.entryAt<ApiKeyEntry>(trail.created);
    const recorded = {
      name: key.name,
      hash: key.hash,
      scopes: key.scopes,
      agent_id: key.agent_id,
      owner: key.owner,
      expires_at: key.expires_at === null ? null : parseEntryTime(key.expires_at),
      created_by: by?.key_id ?? null,
      created_at: parseEntryTime(at),
      revoked_at: trail.revoked_at,
    };
    reportDifferences(recorded, row, reportFault);
    // Only the first key of the store has no creator: the service created it, with all scopes.
    const isFirstKey = by === null && id === this.keyRows.keys().next().value;
    if (!isFirstKey && trail.revoked_at === null && (recorded.expires_at ?? Infinity) > Date.now()) this.warn(key);
  }

  private warn({ id, name, scopes, owner }: ApiKeyEntry["key"]): void {
    const key = `the API key ${id} (${JSON.stringify(name)})`;
    if (canCreateApprovers(scopes)) this.warningTexts.push(`${key} may approve, and create keys that approve`);
    if (hasScope(scopes, "approvals:decide") && owner === null)
      this.warningTexts.push(`${key} may approve, and has no owner`);
    if (owner !== null && !this.users.has(userOfPrincipal(owner) ?? ""))
      this.warningTexts.push(`${key} has the owner ${JSON.stringify(owner)}, who is not a user`);
  }

  private async checkAgent(id: string, reportFault: ReportFault): Promise<void> {
    const trail = this.agentRows.get(id) as { registered: number; last: number; suspended_at: number | null };
    const row = await this.store.agent(id);
    if (row === null) return reportFault("it is in the ledger but not in the store");
    const first = await this.entryAt<AgentEntry>(trail.registered);
    const { at, agent } = await this.entryAt<AgentEntry>(trail.last);
    const recorded = {
      name: agent["name"],
      description: agent["description"],
      allowed_tools: agent["allowed_tools"],
      suspended_at: trail.suspended_at,
      suspended_reason: agent["suspended_reason"],
      version: agent["version"],
      registered_seq: trail.registered,
      created_by: first.by?.key_id ?? null,
      created_at: parseEntryTime(first.at),
      updated_at: parseEntryTime(at),
    };
    reportDifferences(recorded, row, reportFault);
    if (sha256Hex(utf8(row.metadata)) !== agent["metadata"])
      reportFault("its metadata does not match its digest in the ledger");
  }
}
