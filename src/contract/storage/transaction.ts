/** Combines the reads and writes of all tables. */
import type { ActionReads, ActionWrites } from "./actions.ts";
import type { AnalyticsReads } from "./analytics.ts";
import type { DeliveryReads, DeliveryWrites } from "./deliveries.ts";
import type { DirectoryReads, DirectoryWrites } from "./directory.ts";
import type { DocumentReads, DocumentWrites } from "./documents.ts";
import type { LedgerReads, LedgerWrites } from "./ledger.ts";
import type { LimitReads, LimitWrites } from "./limits.ts";
import type { PolicyReads, PolicyWrites } from "./policies.ts";

/** Reads. Outside a transaction they see committed state only; inside one also its own writes. */
export interface StorageReader
  extends
    LedgerReads,
    ActionReads,
    AnalyticsReads,
    DirectoryReads,
    PolicyReads,
    DeliveryReads,
    LimitReads,
    DocumentReads {
  /** Small facts about the store itself (the log's origin, its key). */
  meta(name: string): Promise<string | null>;
}

export interface StorageWrites
  extends LedgerWrites, ActionWrites, DirectoryWrites, PolicyWrites, DeliveryWrites, LimitWrites, DocumentWrites {
  putMeta(name: string, value: string): Promise<void>;
}

/**
 * The writes of one transaction. None is visible to others before `write` resolves. A method that
 * rejects loses the transaction: every later one rejects too, and `write` rolls back and rejects,
 * also when `work` swallows the error. After `work` has ended every method rejects.
 */
export interface StorageTransaction extends StorageReader, StorageWrites {}
