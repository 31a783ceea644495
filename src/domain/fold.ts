/**
 * State that every process computes from ledger entries and keeps in memory. No row of the store holds it, so a writer
 * of the database can neither add to it nor take from it.
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
   * For each type of entry, returns the state after the entry. Must not change the given state, because requests that
   * are running still use it. Throws RangeError if the entry contradicts earlier entries.
   */
  readonly on: Readonly<Record<string, Apply<State>>>;
}
