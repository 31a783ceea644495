/**
 * Ends what is open of an agent that was suspended, or of a key that was revoked. Nothing depends on how soon: whoever
 * votes on such an action or would start it is refused by the decision that is made again then. What is cancelled here
 * stays so when the agent is let go on.
 */
import type { ContainmentTarget, Containment, OpenActionCursor } from "../contract/containment.ts";
import type { LedgerTransaction } from "../contract/ledger.ts";
import { nullIfCorrupt, type ActionGuard, type ActionRow } from "../contract/storage.ts";
import { mayHaveRun } from "../domain/limit-uses.ts";
import { sameName } from "../domain/names.ts";
import { cancellationEntry } from "../domain/open-actions.ts";

/** Actions looked at in one job. */
const PAGE = 200;
const LISTS = ["pending_approval", "allowed", "approved"] as const;

export const containment: Containment = {
  async cancelOpen(tx, whose, why, from) {
    const place = from ?? begin("pending_approval", tx.now);
    const rows = await page(tx, place);
    for (const row of rows) {
      if (!belongs(row, whose)) continue;
      const approvals = (await tx.approvals(row.id)).filter(({ approve }) => approve).length;
      tx.record(cancellationEntry(row, tx.now, { ...why, approvals }), row.submitted_by);
      if (!(await tx.updateAction(row.id, guardOf(row, tx.now), { status: "cancelled", updated_at: tx.now })))
        throw new Error(`${row.id} was not cancelled although the ledger's lock was held`);
      if (!(await isBack(tx, row))) await tx.releaseLimitUses(row.id);
    }
    const last = rows.at(-1);
    if (last !== undefined && rows.length === PAGE)
      return { ...place, ends: endOf(last, place.status), decision_seq: last.decision_seq };
    const next = LISTS[LISTS.indexOf(place.status) + 1];
    return next === undefined ? null : containment.cancelOpen(tx, whose, why, begin(next, tx.now));
  },
};

/** What went back to people may have run before, and goes on to count. */
async function isBack(tx: LedgerTransaction, row: ActionRow): Promise<boolean> {
  if (row.status !== "pending_approval" || row.reason_code !== "MORE_APPROVALS_NEEDED") return false;
  return mayHaveRun(row, await nullIfCorrupt(tx.entriesOfAction(row.id)));
}

function begin(status: OpenActionCursor["status"], now: number): OpenActionCursor {
  return { status, ends: now, decision_seq: Number.MAX_SAFE_INTEGER };
}

function page(tx: LedgerTransaction, { status, ends, decision_seq }: OpenActionCursor): Promise<ActionRow[]> {
  return status === "pending_approval"
    ? tx.pendingActions({ all: true }, { expires_at: ends, decision_seq }, PAGE)
    : tx.startableActions(status, { approved_until: ends, decision_seq }, PAGE);
}

function endOf(row: ActionRow, status: OpenActionCursor["status"]): number {
  return (status === "pending_approval" ? row.expires_at : row.approved_until) ?? 0;
}

function guardOf({ status }: ActionRow, now: number): ActionGuard {
  return status === "pending_approval" ? { status, expires_after: now } : { status, approved_after: now };
}

function belongs(row: ActionRow, whose: ContainmentTarget): boolean {
  return "key_id" in whose ? row.submitted_by === whose.key_id : sameName(row.agent_id, whose.agent_id);
}
