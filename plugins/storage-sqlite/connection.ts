/** One connection with its prepared statements. Everything in here is synchronous, as the library is. */
import { bind, type SqlRow, type Statement } from "../storage-sql/statement.ts";
import { toStorageError } from "./errors.ts";
import type { SqliteLibrary, SqliteStatement } from "./library.ts";

export interface Connection {
  all(statement: Statement, values: object): SqlRow[];
  run(statement: Statement, values: object): number;
  /** Runs SQL without parameters, once; not kept. */
  exec(sql: string): void;
  query(sql: string): SqlRow[];
  /** Never throws. An open transaction is rolled back. */
  close(): void;
}

export interface ConnectionOptions {
  /** How long another process's lock is waited for, in milliseconds. Blocks this thread. */
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
    all: (statement, values) => attempt("read", () => prepared(statement.sql).all(...bind(statement, values)) as SqlRow[]),
    run: (statement, values) => attempt("write", () => Number(prepared(statement.sql).run(...bind(statement, values)).changes)),
    exec: (sql) => attempt("write", () => db.exec(sql)),
    query: (sql) => attempt("read", () => db.prepare(sql).all() as SqlRow[]),
    close() {
      statements.clear();
      try {
        // The package for Node 20 finalizes statements only when they are collected as garbage. Until
        // then SQLite keeps the connection, with its locks if a transaction were open.
        db.exec("rollback");
      } catch {
        // No transaction was open.
      }
      try {
        db.close();
      } catch {
        // Closed already, or the disk is gone: nothing of ours is in there that was acknowledged and not synced.
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
      connection.query("pragma journal_mode = wal");
      // fullfsync: on macOS a plain fsync leaves data in the drive's cache. Elsewhere it does nothing.
      connection.exec("pragma synchronous = full; pragma fullfsync = on; pragma checkpoint_fullfsync = on");
      connection.exec("pragma foreign_keys = on; pragma journal_size_limit = 67108864");
    }
  } catch (error) {
    connection.close();
    throw error;
  }
  return connection;
}
