/** Cancels the open actions of an agent or a key. */
import type { Actor } from "../domain/entries.ts";
import type { LedgerTransaction } from "./ledger.ts";

/** Selects the actions to cancel: all of an agent (in any spelling of its name), or all that a key submitted. */
export type ContainmentTarget = { agent_id: string } | { key_id: string };

/** Position in the list of open actions. */
export interface OpenActionCursor {
  status: "pending_approval" | "allowed" | "approved";
  ends: number;
  decision_seq: number;
}

export interface Containment {
  /**
   * Cancels one page of open actions in this job: pending actions, and allowed or approved ones that have not started.
   * Works in pages so that the ledger's lock is held only briefly. Resolves to the cursor for the next job, or null
   * when no open actions remain.
   * @param from null for the first page
   */
  cancelOpen(
    tx: LedgerTransaction,
    target: ContainmentTarget,
    reason: { by: Actor | null; comment: string },
    from: OpenActionCursor | null,
  ): Promise<OpenActionCursor | null>;
}
