/**
 * State that every process computes from ledger entries and keeps in memory. No table contains it, so someone who can
 * write to the database cannot change it.
 */
import type { EntryBody } from "./entries.ts";

/** The entry is of the type that the function is declared for, and has its sequence number as `seq`. */
type Apply<State> = { apply(state: State, entry: EntryBody): State }["apply"];

/**
 * Declares a state, its value before the first entry, and how each type of entry changes it.
 * @example
 * const noteCount: Fold<number> = { name: "notes", initial: 0, on: { "notes:change": (count) => count + 1 } };
 */
export interface Fold<State> {
  /** Unique among all plugins. */
  readonly name: string;
  readonly initial: State;
  /**
   * Functions keyed by entry type. Each returns the state after the entry. It must not change the given state, because
   * running requests still use it. Throws RangeError if the entry contradicts earlier entries.
   */
  readonly on: Readonly<Record<string, Apply<State>>>;
}
