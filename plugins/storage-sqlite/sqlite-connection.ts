/** One connection with its prepared statements. Synchronous, like the library. */
import type { SqlRow, SqlValue } from "../storage-sql/api.ts";
import { toStorageError } from "./sqlite-errors.ts";
import type { SqliteLibrary, SqliteStatement } from "./load-library.ts";

export interface Connection {
  all(sql: string, values: SqlValue[]): SqlRow[];
  /** Runs a statement. Returns the number of changed rows. */
  run(sql: string, values: SqlValue[]): number;
  /** Runs a statement. Returns its rows, or the number of changed rows if the statement returns no rows. */
  query(sql: string, values: SqlValue[]): { rows: SqlRow[]; changes: number };
  /** Runs SQL without parameters, without caching the statement. */
  exec(sql: string): void;
  /** Rolls back an open transaction and closes the connection. Never throws. */
  close(): void;
}

/** Matches statements that return rows. */
const RETURNS_ROWS = /^(select|with|pragma)\b|\breturning "\w+"/i;

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
      RETURNS_ROWS.test(sql)
        ? { rows: connection.all(sql, values), changes: 0 }
        : { rows: [], changes: connection.run(sql, values) },
    exec: (sql) => attempt("write", () => db.exec(sql)),
    close() {
      statements.clear();
      try {
        // The package for Node 20 finalizes statements only when they are garbage-collected. Until then, SQLite keeps
        // the connection open, including the locks of an open transaction.
        db.exec("rollback");
      } catch {
        // No transaction was open.
      }
      try {
        db.close();
      } catch {
        // The connection is already closed, or the disk is unavailable. Acknowledged data is not lost, because it was
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

/**
 * Connects to a store, with durable commits. Only a writer sets `journal_mode`, because it is a property of the file.
 */
export function connectStore(library: SqliteLibrary, path: string, options: ConnectionOptions): Connection {
  const connection = connect(library, path, options);
  try {
    if (options.readOnly === true) {
      connection.exec("pragma query_only = on");
    } else {
      // Page size of a new store. With smaller pages, an eighth of a page would stay empty after five rows of actions.
      connection.exec("pragma page_size = 8192");
      connection.exec("pragma journal_mode = wal");
      // On macOS a plain fsync leaves data in the drive's cache, so use fullfsync. On other systems, the setting has no
      // effect.
      connection.exec("pragma synchronous = full; pragma fullfsync = on; pragma checkpoint_fullfsync = on");
      // Overwrite deleted content with zeros, even in free pages, so that the file does not contain erased data.
      connection.exec("pragma secure_delete = on");
      connection.exec("pragma foreign_keys = on; pragma journal_size_limit = 67108864");
    }
  } catch (error) {
    connection.close();
    throw error;
  }
  return connection;
}
