/** Whoever asks for what is asked for already gets the same action: people are asked once for one wish. */
import { type Credential, type DecisionEntry, type Host, type LedgerTransaction, Refusal } from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import { reevaluateAction } from "./redecision.ts";
import { verifyAgainstLedger } from "./verify-record.ts";

/**
 * The open action of this key and this request; null where a submission is to be decided by itself. To be called with
 * the credential that the lock confirmed. Throws RECORD_ALTERED.
 */
export async function findJoinableAction(
  host: Host,
  tx: LedgerTransaction,
  who: Credential,
  requestHash: string,
): Promise<ActionRow | null> {
  const row = await tx.openAction(who.key.id, requestHash, tx.now);
  if (row === null) return null;
  const { first } = await verifyAgainstLedger(host, tx, row, await tx.approvals(row.id));
  return (await isDeniedNow(tx, row, first)) ? null : row;
}

/** What is denied or stopped now must not be answered as if it could still run: the submission says why. */
async function isDeniedNow(tx: LedgerTransaction, row: ActionRow, first: DecisionEntry): Promise<boolean> {
  try {
    return (await reevaluateAction(tx, row, first)).decision.effect === "deny";
  } catch (error) {
    if (error instanceof Refusal && error.code === "STOPPED") return true;
    throw error;
  }
}
