/** The past actions that histories of policies consist of. */
import type { HistorySpan, PastActionRow } from "../../domain/policy/decide/history-facts.ts";

export type { HistorySpan, PastActionRow } from "../../domain/policy/decide/history-facts.ts";

/** Maximum characters of a request, as it was submitted or as an approver changed it, that a history reads. */
export const MAX_PAST_REQUEST = 16_384;

/** An action as a part of one history. Unique by all columns but `until`. */
export interface PastActionRef {
  policy: string;
  /** Digest of what the history is kept per. */
  basis: string;
  /** Digest of the owner, such as the agent. */
  subject: string;
  action_id: string;
  at: number;
  /** Time from which no window contains the action; moves together with `at`. */
  until: number;
}

export interface PastActionReads {
  /**
   * Returns the newest actions of a history with `at >= since`, newest first; among equal times, the greater id first. Requests with
   * more than `MAX_PAST_REQUEST` characters are left out, as `PastActionRow` says.
   */
  pastActions(span: HistorySpan): Promise<PastActionRow[]>;
}

export interface PastActionWrites {
  insertPastAction(row: PastActionRef): Promise<void>;
  /** Moves an action to a later time in all its histories, and `until` by as much. Does nothing if its time is `at` or later. */
  movePastAction(actionId: string, at: number): Promise<void>;
  /** Removes an action from all histories. */
  removePastAction(actionId: string): Promise<void>;
  /** Removes up to `max` rows with `until <= now`. Resolves to their number. */
  prunePastActions(now: number, max: number): Promise<number>;
}
