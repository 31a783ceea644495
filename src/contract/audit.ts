/** What features contribute to `assent audit`. */
import type { ActionRequest } from "../domain/actions.ts";
import type { DecisionEntry, EntryBody, EntryType } from "../domain/entries.ts";
import type { Fold } from "../domain/fold.ts";
import type { CompiledPolicySet } from "../domain/policy/compile/compile.ts";
import type { Facts } from "../domain/policy/policy-types.ts";
import type { Bars } from "./bar.ts";
import type { Snapshot } from "./ledger.ts";
import type { NoticeKind } from "./notice.ts";
import type { StorageReader } from "./storage.ts";
import type { StatesReader } from "./states.ts";

/** The states before an entry, and the bars that follow from them. */
export type AuditStates = StatesReader &
  Pick<Snapshot, "placedBar"> &
  Pick<Bars, "coverageOf"> & {
    /** Name of the log. */
    readonly origin: string;
  };

/** Reports a fault of the store. */
export type ReportFault = (detail: string) => void;

/** The first decision on an action, with its restored inputs. */
export interface AuditedDecision {
  entry: DecisionEntry & { seq: number };
  request: ActionRequest;
  facts: Facts;
  /** Returns the policies that decided; null if the store lacks them, which is reported elsewhere. */
  policies(): Promise<CompiledPolicySet | null>;
}

/**
 * Checks rules of a feature that its folds cannot express, such as that no entry may follow a certain other entry. Each
 * audit creates its own auditor, so the auditor may keep state.
 */
export interface FeatureAuditor {
  /**
   * Called for each entry in ledger order. `states` are those before the entry, and `now` is the time of the entry.
   * Throws RangeError if the entry should not exist.
   */
  check?(entry: EntryBody & { seq: number }, states: AuditStates): void;
  /**
   * Returns the key that submitted the subject of an entry that belongs to no action, so that this key can read the
   * entry: the second argument of `tx.record`. Null for all other entries.
   */
  submitterOf?(entry: EntryBody): string | null;
  /** Called for each action with its entries, after all entries were checked. */
  checkVotes?(
    action: Pick<DecisionEntry, "agent_id" | "tool" | "operation">,
    entries: readonly EntryBody[],
    reportFault: ReportFault,
  ): void;
  /** Called for each action whose request is not erased, after all entries were checked. */
  checkDecision?(decision: AuditedDecision, reportFault: ReportFault): Promise<void>;
  /** Called after all actions were checked. */
  finish?(reportFault: ReportFault): void;
  /**
   * Compares the rows and documents of a feature with the entries that `check` received. Called after the newest entry,
   * and again if it reports a fault while entries are added.
   */
  compare?(store: FeatureStore, reportFault: ReportFault, states: StatesReader): Promise<void>;
  /**
   * Returns observations that are not faults. The audit reports at most 20 of each feature.
   * @param now the current time, or that of the newest entry if it is later. Milliseconds
   */
  warnings?(now: number): readonly string[];
  /**
   * Checks a row of `meta` by its name. Returns its fault; null if the row may exist; undefined if another feature owns
   * it.
   */
  findFactFault?(name: string): string | null | undefined;
  /**
   * For each idempotent route of the feature, returns when and by whom a resource was created; null if the route did
   * not create it. `states` are those after the newest entry.
   */
  readonly created?: Readonly<Record<string, (states: StatesReader, id: string) => Creation | null>>;
}

/** What an auditor can read. */
export type FeatureStore = Pick<StorageReader, "entries" | "actionsById" | "documents" | "head" | "policySet" | "meta">;

/** The creator of a resource and the time. The row of its idempotency key must have the same values. */
export interface Creation {
  key_id: string;
  /** Milliseconds. */
  created_at: number;
  /** Hash of the request; absent if the feature does not know it. */
  body_hash?: string;
}

/** The declarations of features that an audit uses. */
export interface AuditedFeatures {
  readonly entryTypes: readonly EntryType[];
  readonly folds: readonly Fold<unknown>[];
  readonly bars: Bars;
  readonly notices: readonly NoticeKind[];
  readonly auditors: readonly (() => FeatureAuditor)[];
}
