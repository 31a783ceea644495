/** What features record when an action fails or a person's trust ends, in the transaction that records it. */
import type { Actor } from "../domain/entries.ts";
import type { User } from "../domain/users.ts";
import type { LedgerTransaction } from "./ledger.ts";
import type { ActionRow } from "./storage.ts";

export type ReactionTransaction = Pick<LedgerTransaction, "record" | "now" | "state" | "placedBar">;

/** A reaction is called after the entry that it reacts to was recorded, under the ledger's lock. */
export interface Reaction {
  /** A person rejected the action. */
  actionRejected?(tx: ReactionTransaction, action: ActionRow, by: Actor): void;
  /** The result of the action reports failure. */
  actionFailed?(tx: ReactionTransaction, action: ActionRow, by: Actor): void;
  agentSuspended?(tx: ReactionTransaction, agentId: string, by: Actor): void;
  /** A user is being deactivated, whose keys `keyIds` were revoked. The entry of the user follows. */
  userDeactivated?(
    tx: ReactionTransaction,
    user: Pick<User, "id" | "name">,
    keyIds: readonly string[],
    by: Actor,
  ): void;
}
