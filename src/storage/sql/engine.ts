/** What a database must do for `createSqlStorage`: connect, read, and run one transaction at a time. */
import type { Storage, StorageError } from "../../contract/storage.ts";
import type { MovedHead, SqlRow, SqlValue } from "./statement.ts";

export type SqlQuery = (sql: string, values: SqlValue[]) => Promise<SqlRow[]>;

/** A statement that only reads, with its parameters. */
export interface SqlRead {
  sql: string;
  values: SqlValue[];
}

/** `write`: may move the ledger. `copy`: fills an empty store, entries before their head. `aside`: leases and probes. `migrate`: the schema. */
export type SqlPurpose = "write" | "copy" | "aside" | "migrate";

export interface SqlEngine extends Pick<
  Storage,
  "name" | "exclusive" | "watch" | "backup" | "onConnection" | "processes"
> {
  /**
   * Connects, and takes the lock where one process alone may write. With `readOnly` nothing is locked or changed, and a
   * store that is not there is refused. After a rejection nothing is left open.
   */
  open(options: { readOnly: boolean }): Promise<void>;
  close(): Promise<void>;
  /** One statement outside of transactions. It sees what is committed, also while a transaction is open. */
  query: SqlQuery;
  /**
   * Begins a transaction; there is one at a time. Where `exclusive` is false, `write` locks the row of `ledger_head`.
   * `reads` run after the lock is acquired, in the same round trip; an engine without round trips ignores them.
   */
  begin(purpose: SqlPurpose, reads?: readonly SqlRead[]): Promise<SqlTransaction>;
  /**
   * Takes what committed transactions have erased out of the database's own leftovers, as far as it can, now or as soon
   * as others let it. Never rejects. Absent where the database has its own ways.
   */
  scrub?(): Promise<void>;
  /** Compares every index with its table, and reports what else the database finds wrong with its files. For the audit. */
  integrityFaults?(): Promise<string[]>;
  /** Compares the store's schema with the one that these statements make in an empty database. For the audit. */
  schemaFaults?(statements: readonly string[]): Promise<string[]>;
  toStorageError(error: unknown, doing: string): StorageError;
  /** True where statements that are sent together are taken in order: then nobody waits for the answers between. */
  readonly pipelined?: boolean;
  /** A view of one moment, for reads that belong together. Absent where statements of one turn see one anyway. */
  snapshot?<T>(work: (query: SqlQuery) => Promise<T>): Promise<T>;
}

/**
 * All statements of it run on the connection that began it, or not at all. They come one at a time, unless `pipelined`.
 * After a statement has failed nothing but `rollback` is called.
 */
export interface SqlTransaction {
  /** `changes`: how many rows it inserted, updated or deleted. */
  query(sql: string, values: SqlValue[]): Promise<{ rows: SqlRow[]; changes: number }>;
  /**
   * Resolves when it is durable. `moved`: the head that the transaction has written, null where it has written none.
   * Where statements are `pipelined` the update of the head is not answered yet, so that the database itself must
   * refuse the commit unless it holds this head.
   */
  commit(moved: MovedHead | null): Promise<void>;
  /** Called also after a commit that failed. Never rejects. */
  rollback(because: unknown): Promise<void>;
  /** The row of `ledger_head`, where the lock brought it along. */
  readonly head?: SqlRow[];
  /** The rows of each of `begin`'s reads. Absent if the engine ignored them. */
  readonly reads?: readonly SqlRow[][];
}
