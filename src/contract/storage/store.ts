/** A store as a whole: opened, written to one transaction at a time, shared or not. */
import type { RemovedRow, StorageCopying } from "./copying.ts";
import type { StoredHead } from "./ledger.ts";
import type { StorageReader, StorageTransaction } from "./transaction.ts";

/** What a process wrote of itself. Ages are by the database's clock. */
export interface ProcessRow {
  instance: string;
  /** The database that it wrote to. A restored copy holds rows that were written to another one. */
  incarnation: string;
  /** Size and root of the newest ledger that the process has signed or seen. */
  size: number;
  root: Uint8Array;
  /** Milliseconds since its first row in this incarnation. */
  since_ms: number;
  /** Milliseconds since its newest row. */
  age_ms: number;
}

/**
 * These statements use a connection of their own, which no `onConnection` check guards: a process that refuses a
 * database must still be able to tell the others why.
 */
export interface ProcessTable {
  /** Writes this process's row, under the present incarnation. */
  report(process: Pick<ProcessRow, "instance" | "size" | "root">): Promise<void>;
  list(): Promise<{ head: StoredHead; processes: ProcessRow[] }>;
  remove(instance: string): Promise<void>;
}

export interface Storage extends StorageReader {
  readonly name: string;
  /**
   * True when no other process can write while this one has the store open. The core then trusts
   * the head it last committed; without it, it reads the head before it trusts anything cached.
   */
  readonly exclusive: boolean;
  /**
   * Takes the lock, migrates, and leaves an empty store with a head of size 0. Idempotent. `readOnly` looks at a
   * store that others may be writing: no lock, no migration, and everything that writes rejects. A store that is
   * not there rejects then, too.
   */
  open(options?: { readOnly?: boolean }): Promise<void>;
  /**
   * Migrations that the store has had, and that this version knows. More applied than known: a newer version migrated
   * it.
   */
  schema(): Promise<{ applied: number; known: number }>;
  /** Waits for running work. Idempotent. The same object may be opened again. */
  close(): Promise<void>;
  /** Rejects when the store cannot take a write now. */
  ping(): Promise<void>;
  /**
   * Runs `work` in one serialised write transaction that holds the head's lock from its first
   * statement, and commits durably (a crash or power loss after `write` resolved loses nothing).
   * When `work` throws, everything is rolled back and its error is passed on unchanged.
   * `work` runs at most once a call. Calls are served one at a time, in order.
   */
  write<T>(work: (tx: StorageTransaction) => Promise<T>): Promise<T>;
  /**
   * True when `holder` has the lease for the next `ms` milliseconds: it was free, had ended, or was the holder's
   * already. The store times it, by one clock for all processes: theirs may be wrong. Everybody asks for a lease of
   * one name for the same time: what is left of it is longer than twice that only where the store's clock was set back,
   * and then it has ended, too. One statement.
   */
  lease(name: string, holder: string, ms: number): Promise<boolean>;
  /** Ends the lease if it is the holder's. */
  release(name: string, holder: string): Promise<void>;
  /** Leases that last, of those that are taken for `ms` at most, in order of name. Those that ended long ago may be forgotten. */
  leases(ms: number): Promise<{ name: string; holder: string }[]>;
  /**
   * Writes a consistent copy of the whole store into a new file, also while others write to the store; for a store
   * that is opened to be read, too. Absent where the database has its own tools for that.
   */
  backup?(path: string): Promise<void>;
  /**
   * Does up to `max` pieces of work that the store puts off, such as sums that make `analytics` fast or bundles of old entries, and resolves to
   * how many it did. It changes nothing that anybody can read. Absent where a store puts nothing off.
   */
  upkeep?(max: number): Promise<number>;
  /**
   * For the audit: what is wrong with what the store keeps beside these tables and nobody who reads through this
   * contract would notice. Absent where there is no such thing.
   */
  inspect?(): Promise<string[]>;
  /**
   * For `assent audit --repair`: takes out the entries behind the head, which no head ever covered, with all that came
   * with them, in one transaction. `keep` has the rows before they go, may write down that it happened, and stops it by
   * rejecting. Resolves to the number of entries removed. Rejects with "corrupt" where a stored checkpoint covers them.
   * Absent where that cannot come about.
   */
  cutBack?(
    keep: (rows: readonly RemovedRow[], tx: Pick<StorageTransaction, "meta" | "putMeta">) => Promise<void>,
  ): Promise<number>;
  /** For `assent copy`; absent where a store cannot be moved. */
  readonly copying?: StorageCopying;
  /** The processes that share the store, by what each has written of itself. Absent where `exclusive`. */
  readonly processes?: ProcessTable;
  /**
   * Calls `changed` soon after any process moved the head, with the new size where that is told. A hint: it may come late, more often than needed, or not at
   * all while a connection is down. Absent where `exclusive`. Resolves to a function that stops it.
   */
  watch?(changed: (size?: number) => void): Promise<() => Promise<void>>;
  /**
   * Calls `check` with what reads through each new connection, before anything else goes through it, and gives up a
   * connection that `check` rejects: what asked for it rejects with the same error. A new connection may lead to
   * another server, which lacks what this process has seen. Absent where no server stands behind the store.
   */
  onConnection?(check: (reader: StorageReader) => Promise<void>): void;
}
