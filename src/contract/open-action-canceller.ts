/** Cancels the open actions of an agent or a key. */
import type { Actor } from "../domain/entries.ts";
import type { LedgerTransaction } from "./ledger.ts";
import type { ActionOwner } from "./storage.ts";

export interface OpenActionCanceller {
  /**
   * Cancels one page of the owner's open actions within this ledger transaction: pending actions, and allowed or
   * approved actions that have not started. Works in pages so that the ledger's lock is held only briefly. Resolves to
   * true if another transaction is needed for more actions. The owner must already be unable to submit, because the
   * agent is suspended or the key is revoked.
   */
  cancelPage(
    tx: LedgerTransaction,
    owner: ActionOwner,
    reason: { by: Actor | null; comment: string },
  ): Promise<boolean>;
}
