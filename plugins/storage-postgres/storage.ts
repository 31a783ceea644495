import type { Storage } from "../../src/storage/index.ts";
import { createSqlStorage, type Migration, postgresDialect, rowTriggersDialect } from "../../src/storage/sql/index.ts";
import { postgresEngine } from "./engine.ts";
import type { SessionOptions } from "./session.ts";

export interface PostgresStorageOptions {
  /** `postgres://user:password@host:port/database`. */
  url: string;
  /** Connections for reads; writes and notifications have one each besides. Default 8. */
  poolSize?: number;
  /** Longest statement. Default 30,000. */
  statementTimeoutMs?: number;
  /** Longest pause between the statements of a transaction: for so long a frozen process holds up the others. Default 2,500. */
  silenceTimeoutMs?: number;
  /** Longest wait for the ledger's lock. Default 10,000. */
  lockTimeoutMs?: number;
  /** Default 10,000. */
  connectTimeoutMs?: number;
  /** Default: as the address says. */
  tls?: SessionOptions["tls"];
  /** For `verify-full`: PEM of the authority, where the system does not know it. */
  ca?: string;
  /** Goes on with a server that has `fsync` or `full_page_writes` off. */
  acceptUnsafeServer?: boolean;
  /** Tells the other processes of what was committed. Default true; false where the server has no NOTIFY. */
  notify?: boolean;
  /** Default true; false where the server has no triggers for statements: TRUNCATE is not refused then. */
  statementTriggers?: boolean;
  /** For tests of migrations. */
  migrations?: readonly Migration[];
  /** How many of the newest entries keep their bytes in their rows. For tests. */
  unbundledEntries?: number;
}

/** The store for more than one process. */
export function postgresStorage(options: PostgresStorageOptions): Storage {
  const engine = postgresEngine({
    url: options.url,
    poolSize: options.poolSize ?? 8,
    statementTimeoutMs: options.statementTimeoutMs ?? 30_000,
    silenceMs: options.silenceTimeoutMs ?? 2_500,
    lockTimeoutMs: options.lockTimeoutMs ?? 10_000,
    connectTimeoutMs: options.connectTimeoutMs ?? 10_000,
    tls: options.tls ?? "from-url",
    ...(options.ca === undefined ? {} : { ca: options.ca }),
    acceptUnsafeServer: options.acceptUnsafeServer ?? false,
    notify: options.notify ?? true,
  });
  return createSqlStorage(engine, options.statementTriggers === false ? rowTriggersDialect : postgresDialect, {
    ...(options.migrations === undefined ? {} : { migrations: options.migrations }),
    ...(options.unbundledEntries === undefined ? {} : { unbundledEntries: options.unbundledEntries }),
  });
}
