/**
 * The full audit of a store: the ledger against itself, and what the tables of actions, votes and policy sets say
 * against what the ledger says. The store may be in use meanwhile. Holds one page at a time, whatever the size.
 */
import type { Vault } from "../contract/host.ts";
import type { ActionRow, StorageReader } from "../contract/storage.ts";
import { mayMove, type ActionRequest } from "../domain/actions.ts";
import type { ApprovalEntry, DecisionEntry, EntryBody, ExecutionEntry } from "../domain/entries.ts";
import { sha256Hex, utf8 } from "../domain/hash.ts";
import { commit, commitResult, sealRequest } from "../domain/request.ts";
import { auditLedger, type AuditReport } from "./audit.ts";

const PAGE = 200;
/** Actions that are looked at together: a database that is far away answers them in parallel. */
const TOGETHER = 8;
/** What is being written while it is looked at can seem wrong once. */
const LOOKS = 3;
const MAX_FAULTS = 20;

export interface StoreAuditOptions {
  verify: Vault["verify"];
  /** Key that the newest checkpoint must be signed with; absent, it is not looked at. */
  vkey?: string;
  progress?(part: "entries" | "actions" | "policy sets", done: number, total: number): void;
}

export interface StoreAuditReport extends AuditReport {
  actions: number;
  policySets: number;
}

/** Reads everything. `faults` is empty when everything holds; it names at most 20 of a kind. */
export async function auditStore(reader: StorageReader, options: StoreAuditOptions): Promise<StoreAuditReport> {
  const sets = new Set<string>();
  let decisions = 0;
  const report = await auditLedger(reader, {
    from: 0,
    verify: options.verify,
    ...(options.vkey === undefined ? {} : { vkey: options.vkey }),
    progress: (done, total) => options.progress?.("entries", done, total),
    onEntry({ type, bytes }) {
      if (type !== "decision" && type !== "policy_set") return;
      if (type === "decision") decisions++;
      const digest = policySetOf(bytes);
      if (digest !== null) sets.add(digest);
    },
  });
  const faults: string[] = [];
  const fault = (what: string): void => {
    if (faults.length < MAX_FAULTS) faults.push(what);
  };
  const actions = await checkActions(reader, report.size, decisions, (done) => options.progress?.("actions", done, decisions), fault);
  if (actions !== decisions) fault(`the store holds ${actions} actions, the ledger ${decisions} decisions`);
  let checked = 0;
  for (const digest of sets) {
    const row = await reader.policySet(digest);
    if (row === null) fault(`the policy set ${digest} decided, and is not in the store`);
    else if (sha256Hex(utf8(row.document)) !== digest) fault(`the policy set ${digest} was altered: its document has another digest`);
    options.progress?.("policy sets", ++checked, sets.size);
  }
  return { ...report, actions, policySets: sets.size, faults: [...report.faults, ...faults] };
}

/** Null where there is none, and where the bytes are no entry any more: that is told by the ledger's own audit. */
function policySetOf(bytes: Uint8Array): string | null {
  try {
    const { policy_set } = JSON.parse(new TextDecoder().decode(bytes)) as { policy_set?: unknown };
    return typeof policy_set === "string" ? policy_set : null;
  } catch {
    return null;
  }
}

/** Newest first, below `size`. Answers how many there are. */
async function checkActions(reader: StorageReader, size: number, total: number, progress: (done: number) => void, fault: (what: string) => void): Promise<number> {
  let before = size;
  let done = 0;
  for (;;) {
    const rows = await reader.actions({ visibility: { all: true }, before_seq: before, limit: PAGE });
    const last = rows.at(-1);
    if (last === undefined) return done;
    for (let i = 0; i < rows.length; i += TOGETHER) {
      const found = await Promise.all(rows.slice(i, i + TOGETHER).map((row) => faultsOf(reader, row)));
      found.flat().forEach(fault);
    }
    done += rows.length;
    before = last.decision_seq;
    progress(Math.min(done, total));
  }
}

async function faultsOf(reader: StorageReader, given: ActionRow): Promise<string[]> {
  let row: ActionRow | null = given;
  for (let look = 1; ; look++) {
    const faults: string[] = [];
    if (row === null) faults.push(`action ${given.id} is gone`);
    else await checkAction(reader, row, faults);
    if (faults.length === 0 || look === LOOKS) return faults;
    row = await reader.action(given.id);
  }
}

async function checkAction(reader: StorageReader, row: ActionRow, faults: string[]): Promise<void> {
  const entries = (await reader.entriesOfAction(row.id)).map(({ bytes }) => JSON.parse(new TextDecoder().decode(bytes)) as EntryBody);
  const fault = (what: string): void => void faults.push(`action ${row.id}: ${what}`);
  const first = entries[0];
  if (first?.type !== "decision") return fault("its first entry is no decision");
  if (row.decision_seq !== (first as DecisionEntry & { seq: number }).seq) fault("it is filed under another entry than its decision");
  if (sealRequest(JSON.parse(row.request) as ActionRequest).hash !== row.request_hash) fault("its request does not hash to its request hash");
  const commitment = commit(row.salt, row.request_hash);
  checkDecision(row, first, fault);
  let status: ActionRow["status"] = first.status;
  let votes = 0;
  for (const entry of entries as (DecisionEntry | ApprovalEntry | ExecutionEntry)[]) {
    if (entry.commitment !== commitment) fault(`an entry of type ${entry.type} commits to another request`);
    if (entry === first) continue;
    if (entry.type === "decision") fault("it was decided twice");
    if (entry.status !== status && !mayMove(status, entry.status)) fault(`it moved from ${status} to ${entry.status}`);
    status = entry.status;
    if (entry.type === "approval" && (entry.verdict === "approve" || entry.verdict === "deny")) votes++;
    if (entry.type === "execution" && entry.phase === "result") {
      const result = row.result === null ? null : (JSON.parse(row.result) as Parameters<typeof commitResult>[1]);
      if (result === null || commitResult(row.salt, result) !== entry.result) fault("its result is not the one in the ledger");
    }
  }
  if (status !== row.status) fault(`it is ${row.status} in the store and ${status} in the ledger`);
  const stored = await reader.approvals(row.id);
  if (stored.length !== votes) fault(`it has ${stored.length} votes in the store and ${votes} in the ledger`);
}

function checkDecision(row: ActionRow, entry: DecisionEntry, fault: (what: string) => void): void {
  const same =
    entry.decision.effect === row.decision &&
    entry.decision.rule === row.rule &&
    entry.decision.policy === row.policy &&
    entry.decision.reason === row.reason &&
    entry.decision.reason_code === row.reason_code &&
    entry.policy_set === row.policy_hash &&
    entry.submitted_by.key_id === row.submitted_by;
  if (!same) fault("its decision in the store is not the one in the ledger");
}
