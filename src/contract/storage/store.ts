/** Opening and closing a store, its write transactions, its leases, and the processes that share it. */
import type { RemovedRow, StorageCopying } from "./copying.ts";
import type { StoredHead } from "./ledger.ts";
import type { StorageReader, StorageTransaction } from "./transaction.ts";

/** The row that a process writes about itself. Ages are measured with the database's clock. */
export interface ProcessRow {
  instance: string;
  /** The database incarnation that the process wrote to. A restored copy contains rows of an earlier incarnation. */
  incarnation: string;
  /** Size and root of the newest ledger state that the process has signed or read. */
  size: number;
  root: Uint8Array;
  /** Milliseconds since the process wrote its first row in this incarnation. */
  since_ms: number;
  /** Milliseconds since the process wrote its newest row. */
  age_ms: number;
}

/**
 * The rows of all processes. The methods use a separate connection without the `onConnection` check, so that a process
 * that rejects a database can still report the reason to the other processes.
 */
export interface ProcessTable {
  /** Writes this process's row, with the current incarnation. */
  report(process: Pick<ProcessRow, "instance" | "size" | "root">): Promise<void>;
  list(): Promise<{ head: StoredHead; processes: ProcessRow[] }>;
  remove(instance: string): Promise<void>;
}

export interface Storage extends StorageReader {
  readonly name: string;
  /**
   * True if no other process can write while this process has the store open. If true, the core trusts the head that it
   * last committed. If false, it reads the head before it uses any cached value.
   */
  readonly exclusive: boolean;
  /**
   * Acquires the lock and runs migrations. A new store gets a head of size 0. Idempotent. With `readOnly`, opens the
   * store without a lock or migrations, even while other processes write to it. All writes then reject. Rejects if a
   * store that is opened with `readOnly` does not exist.
   */
  open(options?: { readOnly?: boolean }): Promise<void>;
  /**
   * Counts the migrations that were applied to the store and the migrations that this version knows. If `applied` is
   * larger than `known`, a newer version migrated the store.
   */
  schema(): Promise<{ applied: number; known: number }>;
  /** Waits for running operations and closes the store. Idempotent. The same object can be opened again. */
  close(): Promise<void>;
  /** Rejects if the store cannot accept a write now. */
  ping(): Promise<void>;
  /**
   * Runs `work` in one serialised write transaction, which holds the head's lock from its first statement. Commits
   * durably: a crash or power failure after `write` resolved loses nothing. If `work` throws, everything is rolled
   * back and its error is rethrown unchanged. `work` runs at most once for each call. Calls run one at a time, in
   * order. The statements of a transaction run in the order of their calls, even if `work` does not await each of them.
   * `readFrom` announces that `work` will probably read the newest entry and the leaf hashes from this sequence number.
   * A remote store then reads them in the round trip that acquires the lock. The option never changes a result.
   */
  write<T>(work: (tx: StorageTransaction) => Promise<T>, options?: { readFrom?: number }): Promise<T>;
  /**
   * Acquires or renews a lease for `ms` milliseconds, in one statement. Resolves to true if the lease was free,
   * expired, or already held by this holder. The store's clock decides, because the clocks of processes can be wrong.
   * All processes must request the lease of a name for the same duration. If more than twice `ms` remains, the store's
   * clock must have been set back, so the lease counts as expired.
   */
  lease(name: string, holder: string, ms: number): Promise<boolean>;
  /** Releases the lease if this holder has it. */
  release(name: string, holder: string): Promise<void>;
  /**
   * Lists active leases that were acquired for at most `ms`, ordered by name. Leases that expired long ago may be
   * deleted.
   */
  leases(ms: number): Promise<{ name: string; holder: string }[]>;
  /**
   * Writes a consistent copy of the store to a new file, even during writes. Also works for a store that was opened
   * with `readOnly`. Absent if the database has its own backup tools.
   */
  backup?(path: string): Promise<void>;
  /**
   * Rewrites the files of the store, so that they contain no copy of erased or deleted data. Other calls wait. If the
   * process ends during the call, the store is unchanged. Absent if the database has its own tools for this.
   */
  compact?(): Promise<void>;
  /**
   * Does up to `max` units of deferred work, such as the sums that make `analytics` fast, and resolves to the number of
   * completed units. Changes nothing that readers can observe. Absent if the store defers no work.
   */
  upkeep?(max: number): Promise<number>;
  /**
   * Returns faults in the store's internal data that the other reads of this contract would not detect. For the audit.
   * Absent if the store has no such data.
   */
  inspect?(): Promise<string[]>;
  /**
   * Removes entries after the head, and all rows written with them, in one transaction, for `assent audit --repair`.
   * Calls `keep` with the rows before they are removed. `keep` can record the repair, or cancel it by rejecting.
   * Resolves to the number of entries removed. Rejects with "corrupt" if a stored checkpoint covers the entries. Absent
   * if such entries cannot occur.
   */
  deleteUncoveredRows?(
    keep: (rows: readonly RemovedRow[], tx: Pick<StorageTransaction, "meta" | "putMeta">) => Promise<void>,
  ): Promise<number>;
  /** Copies rows for `assent copy`. Absent if the store cannot be copied. */
  readonly copying?: StorageCopying;
  /** The rows of the processes that share the store. Absent if `exclusive`. */
  readonly processes?: ProcessTable;
  /**
   * Calls `changed` soon after any process appends entries, with the new size if known. A call is a hint: calls can be
   * late, unnecessary, or missing while a connection is down. Resolves to a function that stops the calls. Absent if
   * `exclusive`.
   */
  watch?(changed: (size?: number) => void): Promise<() => Promise<void>>;
  /**
   * Calls `check` with a reader on each new connection before its first use. If `check` rejects, the connection is
   * closed and the waiting operation rejects with the same error. The check is needed because a new connection can
   * reach another server, which might lack entries that this process has read. Absent if the store has no server.
   */
  onConnection?(check: (reader: StorageReader) => Promise<void>): void;
}
