/**
 * Ends what is open of an agent that was suspended, or of a key that was revoked. Nothing depends on how soon: whoever
 * votes on such an action or would start it is refused by the decision that is made again then. What is cancelled here
 * stays so when the agent is let go on.
 */
import type { Containment, LedgerTransaction } from "../contract/host.ts";
import { unlessCorrupt, type ActionGuard, type ActionRow } from "../contract/storage.ts";
import { mayHaveRun } from "../domain/limit-uses.ts";
import { cancellation } from "../domain/open-actions.ts";

/** Actions cancelled in one job. */
const PAGE = 200;

export const containment: Containment = {
  async cancelOpen(tx, owner, why, from) {
    const place = from ?? { open_until: tx.now, decision_seq: Number.MAX_SAFE_INTEGER };
    const rows = await tx.openActionsOf(owner, place, PAGE);
    for (const row of rows) {
      const approvals = (await tx.approvals(row.id)).filter(({ approve }) => approve).length;
      tx.record(cancellation(row, tx.now, { ...why, approvals }), row.submitted_by);
      if (!(await tx.updateAction(row.id, guardOf(row, tx.now), { status: "cancelled", updated_at: tx.now })))
        throw new Error(`${row.id} was not cancelled although the ledger's lock was held`);
      if (!(await isBack(tx, row))) await tx.releaseLimitUses(row.id);
    }
    const last = rows.at(-1);
    if (last === undefined || rows.length < PAGE) return null;
    const open_until = (last.status === "pending_approval" ? last.expires_at : last.approved_until) ?? 0;
    return { open_until, decision_seq: last.decision_seq };
  },
};

/** What went back to people may have run before, and goes on to count. */
async function isBack(tx: LedgerTransaction, row: ActionRow): Promise<boolean> {
  if (row.status !== "pending_approval" || row.reason_code !== "MORE_APPROVALS_NEEDED") return false;
  return mayHaveRun(row, await unlessCorrupt(tx.entriesOfAction(row.id)));
}

function guardOf({ status }: ActionRow, now: number): ActionGuard {
  return status === "pending_approval" ? { status, expires_after: now } : { status, approved_after: now };
}
