import type { Logger } from "../../src/plugin.ts";
import type { Storage } from "../../src/storage/index.ts";
import { createSqlStorage, type Migration, sqliteDialect } from "../../src/storage/sql/index.ts";
import { SqliteEngine } from "./sqlite-engine.ts";

export interface SqliteStorageOptions {
  /**
   * Path of the database file. A missing folder is created. Files with the suffixes `-wal`, `-shm` and `.lock` are next
   * to it.
   */
  path: string;
  /** Timeout for the lock of another program that writes to the file. Blocks the process meanwhile. */
  busyTimeoutMs?: number;
  /** Called once if only a restart can fix a failure. */
  log?: Logger;
  /** For tests of migrations. */
  migrations?: readonly Migration[];
  /** Number of the newest entries that keep their bytes in their rows. For tests. */
  unbundledEntries?: number;
}

/** Creates the embedded store: one file, one process that writes. */
export function sqliteStorage({ path, busyTimeoutMs = 2000, log, ...options }: SqliteStorageOptions): Storage {
  return createSqlStorage(new SqliteEngine(path, busyTimeoutMs, log), sqliteDialect, options);
}
