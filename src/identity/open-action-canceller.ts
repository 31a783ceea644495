/**
 * Cancels the open actions of a suspended agent or a revoked key. It is safe if this happens late, because every vote
 * and start is evaluated again and denied. Cancelled actions stay cancelled when the agent is resumed.
 */
import type { OpenActionCanceller } from "../contract/open-action-canceller.ts";
import type { LedgerTransaction } from "../contract/ledger.ts";
import { nullIfCorrupt, type ActionRow } from "../contract/storage.ts";
import { mayHaveRun } from "../domain/limit-uses.ts";
import { cancellationEntry } from "../domain/open-actions.ts";

/** Number of actions that one ledger transaction cancels. */
const PAGE_SIZE = 200;

export const openActionCanceller: OpenActionCanceller = {
  async cancelPage(tx, owner, reason) {
    const rows = await tx.openActionsOf(owner, tx.now, PAGE_SIZE);
    for (const row of rows) {
      const approvals = (await tx.approvals(row.id)).filter(({ approve }) => approve).length;
      tx.recordChange(row, null, cancellationEntry(row, tx.now, { ...reason, approvals }));
      if (!(await ranBefore(tx, row))) await tx.releaseLimitUses(row.id);
    }
    return rows.length === PAGE_SIZE;
  },
};

/** Returns true if the action might have run before it became pending again. Its limit uses then still count. */
async function ranBefore(tx: LedgerTransaction, row: ActionRow): Promise<boolean> {
  if (row.status !== "pending_approval" || row.reason_code !== "MORE_APPROVALS_NEEDED") return false;
  return mayHaveRun(row, await nullIfCorrupt(tx.entriesOfAction(row.id)));
}
