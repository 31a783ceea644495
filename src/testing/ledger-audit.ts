/**
 * The full audit that tests end with: the ledger against itself, and what the actions, votes and
 * keys tables say against what the ledger says.
 */
import { verifyEd25519 } from "../kernel/vault.ts";
import { auditLedger, type AuditReport } from "../ledger/audit.ts";
import type { ActionRow, StorageReader } from "../contract/storage.ts";
import type { ApprovalEntry, DecisionEntry, EntryBody, ExecutionEntry } from "../domain/entries.ts";
import { commit, commitResult, sealRequest } from "../domain/request.ts";
import type { ActionRequest } from "../domain/actions.ts";
import { mayMove } from "../domain/actions.ts";

/** Reads every entry. `faults` is empty when everything holds. */
export async function auditStore(reader: StorageReader, vkey?: string): Promise<AuditReport> {
  const byAction = new Map<string, EntryBody[]>();
  const report = await auditLedger(reader, {
    from: 0,
    verify: verifyEd25519,
    ...(vkey === undefined ? {} : { vkey }),
    onEntry(row) {
      const entry = JSON.parse(new TextDecoder().decode(row.bytes)) as EntryBody;
      if (row.action_id !== null) byAction.set(row.action_id, [...(byAction.get(row.action_id) ?? []), entry]);
    },
  });
  const { faults } = report;
  for (const [id, entries] of byAction) {
    const row = await reader.action(id);
    if (row === null) faults.push(`action ${id} is in the ledger and not in the store`);
    else await checkAction(reader, row, entries, faults);
  }
  const stored = await reader.actions({ visibility: { all: true }, limit: byAction.size + 1 });
  if (stored.length !== byAction.size) faults.push(`the store holds ${stored.length} actions, the ledger ${byAction.size}`);
  return report;
}

async function checkAction(reader: StorageReader, row: ActionRow, entries: EntryBody[], faults: string[]): Promise<void> {
  const fault = (what: string): void => void faults.push(`action ${row.id}: ${what}`);
  const first = entries[0];
  if (first?.type !== "decision") return fault("its first entry is no decision");
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
