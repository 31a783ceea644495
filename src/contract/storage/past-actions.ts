/** The past actions that policies read as histories. */
import type { HistorySpan, PastActionRow } from "../../domain/policy/decide/history-facts.ts";

export type { HistorySpan, PastActionRow } from "../../domain/policy/decide/history-facts.ts";

/** Maximum number of characters of a request or a result that a history reads. */
export const MAX_PAST_REQUEST = 16_384;

/** One action in one policy history. All members except `until` form the key. */
export interface PastActionRef {
  policy: string;
  /** Digest of the history's `per`, which groups past actions, for example by customer. */
  basis: string;
  /** Digest of the history's owner, such as the agent. */
  subject: string;
  action_id: string;
  at: number;
  /** Expiry of the membership, after which no window of a history contains the action. Moves together with `at`. */
  until: number;
}

export interface PastActionReads {
  /**
   * Returns the newest actions of a history with `at >= since`, newest first, and with the greater id first if times
   * are equal. Omits requests and results with more than `MAX_PAST_REQUEST` characters.
   */
  pastActions(span: HistorySpan): Promise<PastActionRow[]>;
}

export interface PastActionWrites {
  insertPastAction(row: PastActionRef): Promise<void>;
  /**
   * Sets the time of an action to `at` in all its histories, and moves `until` by the same difference. Does nothing if
   * the stored time is `at` or later.
   */
  movePastAction(actionId: string, at: number): Promise<void>;
  /** Removes an action from all histories. */
  removePastAction(actionId: string): Promise<void>;
  /** Deletes up to `max` rows with `until <= now`. Resolves to the number of deleted rows. */
  prunePastActions(now: number, max: number): Promise<number>;
}
