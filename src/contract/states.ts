import type { Fold } from "../domain/fold.ts";

/** The states that plugins fold from the ledger, at one size of the ledger, and the time. */
export interface StatesReader {
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** Returns the value of a fold. Throws if no loaded plugin declares the fold. */
  state<State>(fold: Fold<State>): State;
}
