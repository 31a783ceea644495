/**
 * One connection to Postgres. Statements of a session run on this connection or not at all. After the connection is lost,
 * every query rejects at once, and a new session is a new object.
 */
import { clearTimeout, setImmediate, setTimeout } from "node:timers";
import type { Socket } from "node:net";
import postgres from "postgres";
import { StorageError } from "../../src/storage/index.ts";
import type { SqlRow, SqlValue } from "../../src/storage/sql/index.ts";
import { openSocket, type Address } from "./dial.ts";
import { isConnectionLoss, toStorageError } from "./postgres-errors.ts";

export interface SessionOptions {
  /** May name several hosts: see `parseAddresses`. */
  url: string;
  /** Name in pg_stat_activity. */
  name: string;
  connectTimeoutMs: number;
  statementTimeoutMs: number;
  lockTimeoutMs: number;
  /** Longest pause between two statements of a transaction, after which the server ends it. */
  silenceMs: number;
  tls: "disable" | "require" | "verify-full" | "from-url";
  /** PEM of the certificate authority of the server, if the system does not trust it. */
  ca?: string;
  /** Response timeout, after which the session is lost. Default: both timeouts plus five seconds. */
  answerTimeoutMs?: number;
  onNotify?(payload: string): void;
}

export interface Result {
  rows: SqlRow[];
  count: number;
  command: string;
}

export interface Session {
  /** Runs a prepared statement. Rejects with the error of Postgres, or StorageError. */
  query(sql: string, values: SqlValue[]): Promise<Result>;
  /** Runs statements without parameters in one message, so that no part of them can reach another connection. */
  script(sql: string): Promise<Result[]>;
  /** Why the session can no longer be used; null while it can. */
  readonly lost: StorageError | null;
  /** Resolves when the session is lost. */
  readonly gone: Promise<void>;
  /** Number of queries that wait for a response. */
  readonly waiting: number;
  /** Number of warnings so far, and the newest one. */
  readonly warned: { readonly count: number; readonly newest: string };
  lose(error: StorageError): void;
  /** Waits for running queries, for at most two seconds, and closes. */
  end(): Promise<void>;
}

function integer(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value))
    throw new StorageError("corrupt", `the store holds the number ${text}, which a double does not hold exactly`);
  return value;
}

const TYPES = {
  int8: { to: 20, from: [20], serialize: String, parse: integer },
  // Type of sum() over bigint.
  numeric: { to: 1700, from: [1700], serialize: String, parse: integer },
  bytea: {
    to: 17,
    from: [17],
    serialize: (bytes: Uint8Array) => `\\x${Buffer.from(bytes).toString("hex")}`,
    parse: (text: string) => new Uint8Array(Buffer.from(text.slice(2), "hex")),
  },
};

/** Connects to this address only. Rejects without an open connection if that fails. */
export async function openSession(options: SessionOptions, address: Address): Promise<Session> {
  /** Longer than Postgres itself waits before it cancels. */
  const patience = options.answerTimeoutMs ?? options.statementTimeoutMs + options.lockTimeoutMs + 5_000;
  let lost: StorageError | null = null;
  let waiting = 0;
  let timer: ReturnType<typeof setTimeout> | null = null;
  let tell: () => void = () => {};
  const gone = new Promise<void>((resolve) => (tell = resolve));
  /** Reject functions of the waiting queries. */
  const refusals = new Set<(error: StorageError) => void>();
  let dialled = false;
  let ending = false;
  let socket: Socket | null = null;
  let warned = { count: 0, newest: "" };

  const client = postgres(options.url, {
    max: 1,
    idle_timeout: 0,
    max_lifetime: null,
    connect_timeout: options.connectTimeoutMs / 1000,
    // Otherwise postgres.js queries the types of arrays by itself, and its errors would be ignored.
    fetch_types: false,
    onnotice({ severity, message }: postgres.Notice) {
      if (severity === "WARNING") warned = { count: warned.count + 1, newest: message ?? "" };
    },
    onnotify: (_channel: string, payload: string) => options.onNotify?.(payload),
    onclose: () => lose(new StorageError("unavailable", "the connection to Postgres was lost")),
    // TLS is handled in `dial`: postgres.js gets a socket that is ready.
    ssl: false,
    host: address.host,
    async socket() {
      if (dialled) throw lose(new StorageError("unavailable", "the connection to Postgres was lost"));
      dialled = true;
      return (socket = await openSocket(address, options.connectTimeoutMs));
    },
    connection: { application_name: options.name },
    types: TYPES,
  } as never) as unknown as postgres.Sql<Record<string, never>>;

  function lose(error: StorageError): StorageError {
    if (lost === null) {
      lost = error;
      tell();
      for (const refuse of refusals) refuse(error);
      void destroy();
    }
    return lost;
  }

  /** Closes the session and discards queued statements. They may wait for a response that never arrives. */
  async function destroy(): Promise<void> {
    await client.end({ timeout: 0 }).catch(() => undefined);
    // Otherwise a half-closed socket would stay open until a hanging server responds.
    socket?.destroy();
  }

  /** Do not use a race with `gone`, which would retain every response as long as the session exists. */
  function unlessLost<T>(answer: PromiseLike<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      refusals.add(reject);
      answer.then(resolve, reject).then(() => refusals.delete(reject));
    });
  }

  let isCorked = false;
  /** Combines statements that are sent together into one write, because postgres.js writes each kilobyte separately. */
  function cork(): void {
    if (isCorked || socket === null) return;
    isCorked = true;
    const own = socket;
    own.cork();
    // Write after the immediate in which postgres.js writes its last bytes; it schedules that before the next tick.
    process.nextTick(() =>
      setImmediate(() => {
        isCorked = false;
        own.uncork();
      }),
    );
  }

  async function answer<T>(send: () => PromiseLike<T>): Promise<T> {
    if (lost !== null) throw lost;
    cork();
    if (ending) throw new StorageError("unavailable", "the connection to Postgres is being closed");
    waiting++;
    // The connection works as long as any query gets a response.
    timer ??= setTimeout(
      () => lose(new StorageError("unavailable", `Postgres gave no answer in ${patience} ms`)),
      patience,
    );
    try {
      const result = await unlessLost(send());
      if (lost !== null) throw lost;
      return result;
    } catch (error) {
      if (isConnectionLoss(error)) lose(toStorageError(error, "reach Postgres"));
      throw error;
    } finally {
      waiting--;
      if (waiting > 0) timer?.refresh();
      else if (timer !== null) {
        clearTimeout(timer);
        timer = null;
      }
    }
  }

  const session: Session = {
    query: (sql, values) =>
      answer(() =>
        client.unsafe(sql, values as never[], { prepare: true }).then((result) => ({
          rows: result as unknown as SqlRow[],
          count: result.count,
          command: result.command,
        })),
      ),
    script: (sql) =>
      answer(() =>
        client.unsafe(sql).then((result) => {
          const all = (isResult(result[0]) ? result : [result]) as unknown as (SqlRow[] & {
            count: number;
            command: string;
          })[];
          return all.map((one) => ({ rows: [...one], count: one.count, command: one.command }));
        }),
      ),
    get lost() {
      return lost;
    },
    gone,
    get waiting() {
      return waiting;
    },
    get warned() {
      return warned;
    },
    lose: (error) => void lose(error),
    async end() {
      ending = true;
      let late: ReturnType<typeof setTimeout> | undefined;
      const patient = new Promise<void>((resolve) => (late = setTimeout(resolve, 2000)));
      await Promise.race([client.end({ timeout: 1 }).catch(() => undefined), patient]);
      clearTimeout(late);
      lose(new StorageError("unavailable", "the connection to Postgres is closed"));
    },
  };
  try {
    // The first query connects. Settings are not passed as parameters of the startup message, because poolers reject or
    // drop those.
    await session.script(
      [
        `set statement_timeout = ${options.statementTimeoutMs}`,
        `set lock_timeout = ${options.lockTimeoutMs}`,
        // A frozen process inside a transaction would block all other processes.
        `set idle_in_transaction_session_timeout = ${options.silenceMs}`,
      ].join("; "),
    );
  } catch (error) {
    void destroy();
    throw error;
  }
  return session;
}

/** A message with several results returns an array of them; one result is an array of rows. */
function isResult(value: unknown): boolean {
  return typeof value === "object" && value !== null && "command" in value && "statement" in value;
}

/** Returns every host in the address, as postgres.js parses it, including environment variables. Does not connect. */
export function parseAddresses({ url, tls, ca }: Pick<SessionOptions, "url" | "tls" | "ca">): Address[] {
  const { options } = postgres(url, { max: 1 });
  const read = options as unknown as { host: string[]; port: number[]; path?: string | false; ssl: Address["tls"] };
  const tlsOptions: Address["tls"] =
    tls === "from-url"
      ? read.ssl
      : tls === "disable"
        ? false
        : tls === "require"
          ? "require"
          : ca === undefined
            ? "verify-full"
            : { ca, rejectUnauthorized: true };
  return read.host.map((host, i) => ({
    host,
    port: read.port[i] ?? (read.port[0] as number),
    tls: tlsOptions,
    ...(typeof read.path === "string" ? { path: read.path } : {}),
  }));
}
