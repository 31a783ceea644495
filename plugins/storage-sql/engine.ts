/** The interface of a database for `createSqlStorage`: it connects, reads, and runs one transaction at a time. */
import type { Storage, StorageError } from "../../src/storage/index.ts";
import type { WrittenHead, SqlRow, SqlValue } from "./statement.ts";

export type SqlQuery = (sql: string, values: SqlValue[]) => Promise<SqlRow[]>;

/** A statement that only reads, with its parameters. */
export interface SqlRead {
  sql: string;
  values: SqlValue[];
}

/**
 * Purpose of a transaction. `write`: can write the ledger's head. `copy`: fills an empty store, and writes entries
 * before the head that covers them. `aside`: changes rows that are not decisions, such as leases and bundles.
 * `migrate`: changes the schema.
 */
export type SqlPurpose = "write" | "copy" | "aside" | "migrate";

export interface SqlEngine extends Pick<
  Storage,
  "name" | "exclusive" | "watch" | "backup" | "compact" | "onConnection" | "processes"
> {
  /**
   * Prepares connections, and acquires the lock if the engine allows only one writing process. With `readOnly`,
   * acquires no lock and changes nothing. An engine may connect at the first query and need not detect a missing store:
   * the caller reads the schema version next. If `open` rejects, no connection is open.
   */
  open(options: { readOnly: boolean }): Promise<void>;
  close(): Promise<void>;
  /**
   * Runs one statement outside transactions. The statement reads only committed data, even while a transaction is open.
   */
  query: SqlQuery;
  /**
   * Begins a transaction. Only one can be open. If `exclusive` is false, `write` and `copy` lock the row of
   * `ledger_head`. `reads` run after the lock is acquired, in the same round trip; an engine without round trips
   * ignores them.
   */
  begin(purpose: SqlPurpose, reads?: readonly SqlRead[]): Promise<SqlTransaction>;
  /**
   * Removes erased data from the database's free pages and logs, as far as possible, now or later. Never rejects.
   * Absent if the database does this itself.
   */
  scrub?(): Promise<void>;
  /**
   * Compares every index with its table, and returns other faults that the database finds in its files. For the audit.
   */
  integrityFaults?(): Promise<string[]>;
  /** Compares the store's schema with the schema that these statements create in an empty database. For the audit. */
  schemaFaults?(statements: readonly string[]): Promise<string[]>;
  toStorageError(error: unknown, doing: string): StorageError;
  /** Whether statements can be sent before the responses to earlier statements arrive. They still run in order. */
  readonly pipelined?: boolean;
  /**
   * Runs reads on one snapshot. Absent if statements that start in the same turn of the event loop read the same
   * snapshot.
   */
  snapshot?<T>(work: (query: SqlQuery) => Promise<T>): Promise<T>;
}

/**
 * One transaction. All its statements run on the connection that began it, or fail. Statements run one at a time unless
 * `pipelined`. After a failed statement, only `rollback` can be called.
 */
export interface SqlTransaction {
  /** Runs a statement. `changes` is the number of rows that were inserted, updated or deleted. */
  query(sql: string, values: SqlValue[]): Promise<{ rows: SqlRow[]; changes: number }>;
  /**
   * Commits, and resolves when the transaction is durable. `moved` is the head that the transaction has written; null
   * if it did not write the head. If statements are `pipelined`, the update of the head may not have a response yet, so
   * the database must refuse the commit unless the stored head equals `moved`.
   */
  commit(moved: WrittenHead | null): Promise<void>;
  /** Rolls back. Also called after a failed commit. Never rejects. */
  rollback(cause: unknown): Promise<void>;
  /** The row of `ledger_head`, if the statement that acquires the lock returned it. */
  readonly head?: SqlRow[];
  /** The rows of each of the `reads` that `begin` got. Absent if the engine ignored them. */
  readonly reads?: readonly SqlRow[][];
}
