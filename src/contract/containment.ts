/** Cancels the open actions of an agent or a key. */
import type { Actor } from "../domain/entries.ts";
import type { LedgerTransaction } from "./ledger.ts";
import type { ActionOwner } from "./storage.ts";

export interface Containment {
  /**
   * Cancels one page of the owner's open actions in this job: pending actions, and allowed or approved ones that have
   * not started. Works in pages so that the ledger's lock is held only briefly. Resolves to whether another job is
   * needed. The owner must be unable to submit, as a suspended agent or a revoked key is.
   */
  cancelOpen(
    tx: LedgerTransaction,
    owner: ActionOwner,
    reason: { by: Actor | null; comment: string },
  ): Promise<boolean>;
}
