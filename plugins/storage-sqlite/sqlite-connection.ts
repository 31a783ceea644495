/** One connection with its prepared statements. Synchronous, because the library is. */
import type { SqlRow, SqlValue } from "../../src/storage/sql/index.ts";
import { toStorageError } from "./sqlite-errors.ts";
import type { SqliteLibrary, SqliteStatement } from "./load-library.ts";

export interface Connection {
  all(sql: string, values: SqlValue[]): SqlRow[];
  /** Returns the number of rows changed. */
  run(sql: string, values: SqlValue[]): number;
  /** Runs a statement. Returns its rows, or the number of changed rows if it returns none. */
  query(sql: string, values: SqlValue[]): { rows: SqlRow[]; changes: number };
  /** Runs SQL without parameters, without caching the statement. */
  exec(sql: string): void;
  /** Closes the connection and rolls back an open transaction. Never throws. */
  close(): void;
}

/** Matches statements that return rows. */
const READS = /^(select|with|pragma)\b|\breturning "\w+"/i;

export interface ConnectionOptions {
  /** Maximum wait for another process's lock, in milliseconds. Blocks this thread. */
  busyTimeout: number;
  readOnly?: boolean;
}

export function connect(library: SqliteLibrary, path: string, options: ConnectionOptions): Connection {
  const db = attempt("open", () => new library.DatabaseSync(path));
  const statements = new Map<string, SqliteStatement>();

  function prepared(sql: string): SqliteStatement {
    let statement = statements.get(sql);
    if (statement === undefined) {
      statement = db.prepare(sql);
      statements.set(sql, statement);
    }
    return statement;
  }

  function attempt<T>(doing: string, work: () => T): T {
    try {
      return work();
    } catch (error) {
      throw toStorageError(error, `${doing} ${path}`);
    }
  }

  const connection: Connection = {
    all: (sql, values) => attempt("read", () => prepared(sql).all(...values) as SqlRow[]),
    run: (sql, values) => attempt("write", () => Number(prepared(sql).run(...values).changes)),
    query: (sql, values) =>
      READS.test(sql)
        ? { rows: connection.all(sql, values), changes: 0 }
        : { rows: [], changes: connection.run(sql, values) },
    exec: (sql) => attempt("write", () => db.exec(sql)),
    close() {
      statements.clear();
      try {
        // The package for Node 20 finalizes statements only when they are collected as garbage. Until then SQLite keeps
        // the connection open, including the locks of an open transaction.
        db.exec("rollback");
      } catch {
        // No transaction was open.
      }
      try {
        db.close();
      } catch {
        // The connection is already closed, or the disk is unavailable. No acknowledged data is lost, because it was
        // synced.
      }
    },
  };
  try {
    connection.exec(`pragma busy_timeout = ${options.busyTimeout}`);
  } catch (error) {
    connection.close();
    throw error;
  }
  return connection;
}

/** A store's connection: durable commits. `journal_mode` is a property of the file and is set once, by the writer. */
export function connectStore(library: SqliteLibrary, path: string, options: ConnectionOptions): Connection {
  const connection = connect(library, path, options);
  try {
    if (options.readOnly === true) {
      connection.exec("pragma query_only = on");
    } else {
      // Page size of a new store. An eighth of a smaller page would stay empty after five rows of actions.
      connection.exec("pragma page_size = 8192");
      connection.exec("pragma journal_mode = wal");
      // Use fullfsync, because on macOS a plain fsync leaves data in the drive's cache. Elsewhere the setting does
      // nothing.
      connection.exec("pragma synchronous = full; pragma fullfsync = on; pragma checkpoint_fullfsync = on");
      // Overwrites deleted content with zeros, also in free pages, so that erased data is not in the file.
      connection.exec("pragma secure_delete = on");
      connection.exec("pragma foreign_keys = on; pragma journal_size_limit = 67108864");
    }
  } catch (error) {
    connection.close();
    throw error;
  }
  return connection;
}
