/** The past actions of which the histories of policies consist. */
import type { HistorySpan, PastActionRow } from "../../domain/policy/decide/history-facts.ts";

export type { HistorySpan, PastActionRow } from "../../domain/policy/decide/history-facts.ts";

/** Maximum characters of a request, submitted or changed by an approver, that a history reads. */
export const MAX_PAST_REQUEST = 16_384;

/** An action as a member of one history. Unique by all columns except `until`. */
export interface PastActionRef {
  policy: string;
  /** Digest of what the history is kept per. */
  basis: string;
  /** Digest of the owner, such as the agent. */
  subject: string;
  action_id: string;
  at: number;
  /** Time from which on no window contains the action. Moves together with `at`. */
  until: number;
}

export interface PastActionReads {
  /**
   * Returns the newest actions of a history with `at >= since`, newest first; among equal times, the greater id first.
   * Leaves out the requests with more than `MAX_PAST_REQUEST` characters.
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
  /** Deletes up to `max` rows with `until <= now`. Resolves to their number. */
  prunePastActions(now: number, max: number): Promise<number>;
}
