/** Connections through postgres.js, with values as the shared SQL expects them. */
import postgres from "postgres";
import { StorageError } from "../../src/contract/storage.ts";
import { bind, type SqlRow, type Statement } from "../storage-sql/statement.ts";
import { losesConnection } from "./errors.ts";

export type Client = postgres.Sql<Record<string, never>>;

export interface ClientOptions {
  url: string;
  /** Connections. */
  max: number;
  /** What a human sees in pg_stat_activity. */
  name: string;
  connectTimeoutMs: number;
  statementTimeoutMs: number;
  lockTimeoutMs: number;
  tls: "disable" | "require" | "verify-full" | "from-url";
  /** PEM of the authority that signed the server's certificate, where the system does not know it. */
  ca?: string;
  /** Called when a connection is gone, before anything is sent on another. */
  onclose?(): void;
}

/** Milliseconds; many turns of the event loop, and nothing beside what a lost connection costs. */
const UNTIL_ITS_END = 25;

function integer(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new StorageError("corrupt", `the store holds the number ${text}, which a double does not hold exactly`);
  return value;
}

export function connectPostgres(options: ClientOptions): Client {
  return postgres(options.url, {
    max: options.max,
    idle_timeout: 0,
    max_lifetime: null,
    connect_timeout: options.connectTimeoutMs / 1000,
    // A short wait between attempts: whoever asks meanwhile is told that the store is not there.
    backoff: (attempts: number) => Math.min(1, 0.05 * 2 ** attempts),
    onnotice: () => {},
    ...(options.onclose === undefined ? {} : { onclose: options.onclose }),
    ...(options.tls === "from-url" ? {} : { ssl: options.tls === "disable" ? false : options.tls === "require" ? "require" : options.ca === undefined ? "verify-full" : { ca: options.ca, rejectUnauthorized: true } }),
    connection: {
      application_name: options.name,
      statement_timeout: options.statementTimeoutMs,
      lock_timeout: options.lockTimeoutMs,
      // A process that hangs inside its transaction would hold up every other.
      idle_in_transaction_session_timeout: options.statementTimeoutMs,
    },
    types: {
      int8: { to: 20, from: [20], serialize: String, parse: integer },
      // What sum() over bigint gives.
      numeric: { to: 1700, from: [1700], serialize: String, parse: integer },
      bytea: { to: 17, from: [17], serialize: (bytes: Uint8Array) => `\\x${Buffer.from(bytes).toString("hex")}`, parse: (text: string) => new Uint8Array(Buffer.from(text.slice(2), "hex")) },
    },
  }) as unknown as Client;
}

/**
 * postgres.js forgets, without an answer, a query that it is given between a socket's error and its end, which follows
 * within a turn or two of the event loop: until then nobody may go on from the error.
 */
export async function afterItsEnd(error: unknown): Promise<never> {
  if (losesConnection(error)) await new Promise<void>((resolve) => setTimeout(resolve, UNTIL_ITS_END));
  throw error;
}

/** The answer, or StorageError after `ms`, so that nothing waits for ever whatever becomes of the query. */
export async function answered<T>(query: PromiseLike<T>, ms: number): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new StorageError("unavailable", `Postgres gave no answer in ${ms} ms`)), ms);
    timer.unref?.();
  });
  try {
    return await Promise.race([query, late]);
  } catch (error) {
    return await afterItsEnd(error);
  } finally {
    clearTimeout(timer);
  }
}

/** Waits for what runs, for two seconds at most: after a crash of the server postgres.js may wait for an answer that never comes. */
export async function endClient(client: Client): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const patience = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, 2000);
  });
  await Promise.race([client.end({ timeout: 1 }).catch(() => undefined), patience]);
  clearTimeout(timer);
}

/** Runs a prepared statement on whatever connection the client, or the transaction, gives. */
export function execute(client: Pick<Client, "unsafe">, statement: Statement, values: object): Promise<{ rows: SqlRow[]; count: number }> {
  return client.unsafe(statement.sql, bind(statement, values) as never[], { prepare: true }).then((result) => ({ rows: result as unknown as SqlRow[], count: result.count }));
}
