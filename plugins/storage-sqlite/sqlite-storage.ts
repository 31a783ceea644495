import type { Logger } from "../../src/plugin.ts";
import type { Storage } from "../../src/storage/index.ts";
import { createSqlStorage, type Migration, sqliteDialect } from "../storage-sql/api.ts";
import { SqliteEngine } from "./sqlite-engine.ts";

export interface SqliteStorageOptions {
  /**
   * Path of the database file. A missing folder is created. Files with the suffixes `-wal`, `-shm` and `.lock` are
   * stored next to it.
   */
  path: string;
  /**
   * Timeout for the lock of another program that writes to the file. The process is blocked while it waits.
   * Milliseconds.
   */
  busyTimeoutMs?: number;
  /** Receives an error if only a restart can fix a failure, or if the store's files are removed or replaced. */
  log?: Logger;
  /** Replaces the migrations in tests. */
  migrations?: readonly Migration[];
  /** Number of the newest entries whose bytes stay in their rows. For tests. */
  unbundledEntries?: number;
}

/** Creates the embedded store: one file, one process that writes. */
export function sqliteStorage({ path, busyTimeoutMs = 2000, log, ...options }: SqliteStorageOptions): Storage {
  return createSqlStorage(new SqliteEngine(path, busyTimeoutMs, log), sqliteDialect, options);
}
