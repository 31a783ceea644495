import type { Storage } from "../../src/storage/index.ts";
import { createSqlStorage, type Migration, postgresDialect, rowTriggersDialect } from "../storage-sql/api.ts";
import { PostgresEngine } from "./postgres-engine.ts";
import type { SessionOptions } from "./database-session.ts";

export interface PostgresStorageOptions {
  /** `postgres://user:password@host:port/database`. */
  url: string;
  /**
   * Number of connections for reads. Three more connections are for writes, for notifications, and for the table of
   * processes. Default 8.
   */
  poolSize?: number;
  /** Statement timeout. Milliseconds. Default 30,000. */
  statementTimeoutMs?: number;
  /**
   * Maximum pause between two statements of a transaction, which limits how long a frozen process can block the others.
   * Milliseconds. Default 2,500.
   */
  silenceTimeoutMs?: number;
  /** Timeout for the ledger's lock. Milliseconds. Default 10,000. */
  lockTimeoutMs?: number;
  /** Connection timeout. Milliseconds. Default 10,000. */
  connectTimeoutMs?: number;
  /** TLS mode. Default: the mode in the URL. */
  tls?: SessionOptions["tls"];
  /** Certificate authority as PEM for `verify-full`, if the system does not trust it. */
  ca?: string;
  /** Accepts a server that has `fsync` or `full_page_writes` off. */
  acceptUnsafeServer?: boolean;
  /** Notifies other processes of commits. Default true. Use false for servers without NOTIFY. */
  notify?: boolean;
  /** Whether the server has statement triggers. Default true. If false, TRUNCATE is not rejected. */
  statementTriggers?: boolean;
  /** Replaces the migrations in tests. */
  migrations?: readonly Migration[];
  /** Number of the newest entries whose bytes stay in their rows. For tests. */
  unbundledEntries?: number;
}

/** Creates a storage that several processes can share. */
export function postgresStorage(options: PostgresStorageOptions): Storage {
  const engine = new PostgresEngine({
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
