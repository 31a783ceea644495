/** Ends what is open of an agent or of a key. */
import type { Actor } from "../domain/entries.ts";
import type { LedgerTransaction } from "./host.ts";
import type { ActionOwner, OpenPlace } from "./storage.ts";

export interface Containment {
  /**
   * Cancels, in this job, what is open of them: what waits for approval, and what may start and has not. A page at a
   * time, so that nobody waits long for the lock: resolves with where the next job goes on, null when nothing is left.
   * @param from null begins
   */
  cancelOpen(
    tx: LedgerTransaction,
    owner: ActionOwner,
    why: { by: Actor; comment: string },
    from: OpenPlace | null,
  ): Promise<OpenPlace | null>;
}
