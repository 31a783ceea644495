import type { Logger } from "../../src/plugin.ts";
import type { Storage } from "../../src/storage/index.ts";
import { createSqlStorage, type Migration, sqliteDialect } from "../../src/storage/sql/index.ts";
import { sqliteEngine } from "./sqlite-engine.ts";

export interface SqliteStorageOptions {
  /** The database file. Its folder is made when missing. `-wal`, `-shm` and `.lock` files stand beside it. */
  path: string;
  /** How long the lock of another program that writes to the file is waited for. Blocks the process meanwhile. */
  busyTimeoutMs?: number;
  /** Is told, once, what only a restart mends. */
  log?: Logger;
  /** For tests of migrations. */
  migrations?: readonly Migration[];
  /** How many of the newest entries keep their bytes in their rows. For tests. */
  unbundledEntries?: number;
}

/** The embedded store: one file, one process that writes. */
export function sqliteStorage({ path, busyTimeoutMs = 2000, log, ...options }: SqliteStorageOptions): Storage {
  return createSqlStorage(sqliteEngine(path, busyTimeoutMs, log), sqliteDialect, options);
}
