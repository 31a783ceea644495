/** Combines the reads and writes of all tables. */
import type { ActionReads, ActionWrites } from "./actions.ts";
import type { AnalyticsReads } from "./analytics.ts";
import type { DeliveryReads, DeliveryWrites } from "./deliveries.ts";
import type { DirectoryReads, DirectoryWrites } from "./directory.ts";
import type { DocumentReads, DocumentWrites } from "./documents.ts";
import type { LedgerReads, LedgerWrites } from "./ledger.ts";
import type { LimitReads, LimitWrites } from "./limits.ts";
import type { PastActionReads, PastActionWrites } from "./past-actions.ts";
import type { PolicyReads, PolicyWrites } from "./policies.ts";

/**
 * The reads. Outside a transaction they return only committed state; within a transaction they also return its writes.
 */
export interface StorageReader
  extends
    LedgerReads,
    ActionReads,
    AnalyticsReads,
    DirectoryReads,
    PolicyReads,
    DeliveryReads,
    LimitReads,
    PastActionReads,
    DocumentReads {
  /** Returns a stored value of the store itself, such as the log's origin. */
  meta(name: string): Promise<string | null>;
}

export interface StorageWrites
  extends
    LedgerWrites,
    ActionWrites,
    DirectoryWrites,
    PolicyWrites,
    DeliveryWrites,
    LimitWrites,
    PastActionWrites,
    DocumentWrites {
  putMeta(name: string, value: string): Promise<void>;
}

/**
 * The reads and writes of one transaction. The writes become visible outside it when `write` resolves. If a method
 * rejects, every later method rejects too, and `write` rolls back and rejects, even if `work` ignores the error. After
 * `work` has ended every method rejects.
 */
export interface StorageTransaction extends StorageReader, StorageWrites {}
