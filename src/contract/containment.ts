/** Ends what is open of an agent or of a key. */
import type { Actor } from "../domain/entries.ts";
import type { LedgerTransaction } from "./host.ts";

/** Whose actions are cancelled: an agent's, however its name is written, or those that a key submitted. */
export type ContainmentTarget = { agent_id: string } | { key_id: string };

/** Where a look through what is open stands. */
export interface OpenActionCursor {
  status: "pending_approval" | "allowed" | "approved";
  ends: number;
  decision_seq: number;
}

export interface Containment {
  /**
   * Cancels, in this job, what is open of them: what waits for approval, and what may start and has not. A page at a
   * time, so that nobody waits long for the lock: resolves with where the next job goes on, null when nothing is left.
   * @param from null begins
   */
  cancelOpen(
    tx: LedgerTransaction,
    target: ContainmentTarget,
    reason: { by: Actor; comment: string },
    from: OpenActionCursor | null,
  ): Promise<OpenActionCursor | null>;
}
