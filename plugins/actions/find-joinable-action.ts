/** Joins a duplicate request to its open action, so that approvers see one request once. */
import type { CoreHost, DecisionEntry, LedgerTransaction, RedecisionEntry, SessionFact } from "../../src/core.ts";
import type { Credential } from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import { isUnderAuthority } from "./authority-inputs.ts";
import { BarredError } from "./barred.ts";
import { reevaluateAction } from "./redecision.ts";
import { hasClaimsOf } from "./self-approval.ts";
import { verifyAgainstLedger } from "./verify-record.ts";

/**
 * Returns the open action of this key with this request, or null if a new action must be created.
 * Throws RECORD_ALTERED if the action differs from the ledger.
 * @param credential the key, checked again under the lock
 */
export async function findJoinableAction(
  host: CoreHost,
  tx: LedgerTransaction,
  credential: Credential,
  requestHash: string,
  { session, authority }: { session: SessionFact | null; authority: string | null },
): Promise<ActionRow | null> {
  const row = await tx.openAction(credential.key.id, requestHash, tx.now);
  if (row === null || !isUnderAuthority(row, authority)) return null;
  const { basis } = await verifyAgainstLedger(host, tx, row, await tx.approvals(row.id));
  // Do not join an action of another session or of other claims, because its decision depends on them.
  if (basis.facts.session?.id !== session?.id || !hasClaimsOf(basis, credential)) return null;
  return (await isDeniedNow(host, tx, row, basis)) ? null : row;
}

/**
 * Returns true if the current policies or a stop deny the open action. If so, the caller creates a new action, whose
 * decision records the reason.
 */
async function isDeniedNow(
  host: CoreHost,
  tx: LedgerTransaction,
  row: ActionRow,
  basis: DecisionEntry | RedecisionEntry,
): Promise<boolean> {
  try {
    return (await reevaluateAction(host, tx, row, basis)).decision.effect === "deny";
  } catch (error) {
    if (error instanceof BarredError) return true;
    throw error;
  }
}
