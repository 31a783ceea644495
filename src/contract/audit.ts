/** What features contribute to `assent audit`. */
import type { EntryBody, EntryType } from "../domain/entries.ts";
import type { Fold } from "../domain/fold.ts";
import type { Bars } from "./bar.ts";
import type { NoticeKind } from "./notice.ts";
import type { StorageReader } from "./storage.ts";
import type { StatesReader } from "./states.ts";

/**
 * Checks what the states of a feature cannot state, such as an entry that should not exist beside an earlier one. One
 * auditor is created for each audit, so it may remember entries.
 */
export interface FeatureAuditor {
  /**
   * Called for each entry in ledger order. `states` are those before the entry, and `now` is the time of the entry.
   * Throws RangeError if the entry should not exist.
   */
  check?(entry: EntryBody & { seq: number }, states: StatesReader): void;
  /**
   * Compares what the feature stores besides its states with the entries that `check` got. Called after the newest
   * entry, and again if it reports a fault while entries are added.
   */
  compare?(store: FeatureStore, fault: (message: string) => void): Promise<void>;
  /**
   * For each idempotent route of the feature, returns who created a resource and when; null if the route did not create
   * it. `states` are those after the newest entry.
   */
  readonly created?: Readonly<Record<string, (states: StatesReader, id: string) => Creation | null>>;
}

/** What an auditor can read. */
export type FeatureStore = Pick<StorageReader, "entries" | "actionsById" | "documents">;

/** Who created a resource, as the row of an idempotency key must have it. */
export interface Creation {
  key_id: string;
  /** Milliseconds. */
  created_at: number;
}

/** The declarations of features that an audit uses. */
export interface AuditedFeatures {
  readonly entryTypes: readonly EntryType[];
  readonly folds: readonly Fold<unknown>[];
  readonly bars: Bars;
  readonly notices: readonly NoticeKind[];
  readonly auditors: readonly (() => FeatureAuditor)[];
}
