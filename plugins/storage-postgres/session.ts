/**
 * One connection to Postgres, for its whole life: what is sent to a session runs on this connection or nowhere. When
 * the connection is gone the session is lost, every query rejects at once, and another session is another object.
 */
import { clearTimeout, setImmediate, setTimeout } from "node:timers";
import type { Socket } from "node:net";
import postgres from "postgres";
import { StorageError } from "../../src/storage/index.ts";
import type { SqlRow, SqlValue } from "../../src/storage/sql/index.ts";
import { dial, type Address } from "./dial.ts";
import { losesConnection, toStorageError } from "./errors.ts";

export interface SessionOptions {
  /** May name several hosts: see `addressesOf`. */
  url: string;
  /** What a human sees in pg_stat_activity. */
  name: string;
  connectTimeoutMs: number;
  statementTimeoutMs: number;
  lockTimeoutMs: number;
  /** Longest pause between the statements of a transaction, after which the server ends it. */
  silenceMs: number;
  tls: "disable" | "require" | "verify-full" | "from-url";
  /** PEM of the authority that signed the server's certificate, where the system does not know it. */
  ca?: string;
  /** Longest wait for an answer, after which the session is lost. Default: both timeouts and five seconds more. */
  answerTimeoutMs?: number;
  onNotify?(payload: string): void;
}

export interface Result {
  rows: SqlRow[];
  count: number;
  command: string;
}

export interface Session {
  /** A prepared statement. Rejects with what Postgres says, or StorageError. */
  query(sql: string, values: SqlValue[]): Promise<Result>;
  /** One or several statements without parameters, in one message: no other connection can get a part of them. */
  script(sql: string): Promise<Result[]>;
  /** Why the session can no longer be used; null while it can. */
  readonly lost: StorageError | null;
  /** Resolves when it is lost. */
  readonly gone: Promise<void>;
  /** Queries that wait for their answer. */
  readonly waiting: number;
  /** How many warnings have come, and what the newest says. */
  readonly warned: { readonly count: number; readonly newest: string };
  lose(error: StorageError): void;
  /** Waits for what runs, for two seconds at most. */
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
  // What sum() over bigint gives.
  numeric: { to: 1700, from: [1700], serialize: String, parse: integer },
  bytea: {
    to: 17,
    from: [17],
    serialize: (bytes: Uint8Array) => `\\x${Buffer.from(bytes).toString("hex")}`,
    parse: (text: string) => new Uint8Array(Buffer.from(text.slice(2), "hex")),
  },
};

/** To this address alone. Rejects when no connection could be made; nothing is left then. */
export async function openSession(options: SessionOptions, address: Address): Promise<Session> {
  /** Longer than Postgres itself takes to give up. */
  const patience = options.answerTimeoutMs ?? options.statementTimeoutMs + options.lockTimeoutMs + 5_000;
  let lost: StorageError | null = null;
  let waiting = 0;
  let timer: ReturnType<typeof setTimeout> | null = null;
  let tell: () => void = () => {};
  const gone = new Promise<void>((resolve) => (tell = resolve));
  /** What rejects the queries that wait. */
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
    // It asks by itself for the types of arrays, and nobody would hear when that fails.
    fetch_types: false,
    onnotice({ severity, message }: postgres.Notice) {
      if (severity === "WARNING") warned = { count: warned.count + 1, newest: message ?? "" };
    },
    onnotify: (_channel: string, payload: string) => options.onNotify?.(payload),
    onclose: () => lose(new StorageError("unavailable", "the connection to Postgres was lost")),
    // TLS is spoken below: postgres.js sees a socket that is ready.
    ssl: false,
    host: address.host,
    async socket() {
      if (dialled) throw lose(new StorageError("unavailable", "the connection to Postgres was lost"));
      dialled = true;
      return (socket = await dial(address, options.connectTimeoutMs));
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

  /** What postgres.js still holds dies with it. It may wait for an answer that never comes. */
  async function destroy(): Promise<void> {
    await client.end({ timeout: 0 }).catch(() => undefined);
    // Half closed, it would stay as long as a server that hangs does.
    socket?.destroy();
  }

  /** No race with `gone`, which would keep every answer for as long as the session lives. */
  function unlessLost<T>(answer: PromiseLike<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      refusals.add(reject);
      answer.then(resolve, reject).then(() => refusals.delete(reject));
    });
  }

  let isCorked = false;
  /** Sends statements that are given together in one write: postgres.js writes each kilobyte by itself. */
  function cork(): void {
    if (isCorked || socket === null) return;
    isCorked = true;
    const own = socket;
    own.cork();
    // After the immediate in which postgres.js writes its last bytes, which it requests before the next tick.
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
    // As long as anything is answered, however many wait, the connection lives.
    timer ??= setTimeout(
      () => lose(new StorageError("unavailable", `Postgres gave no answer in ${patience} ms`)),
      patience,
    );
    try {
      const result = await unlessLost(send());
      if (lost !== null) throw lost;
      return result;
    } catch (error) {
      if (losesConnection(error)) lose(toStorageError(error, "reach Postgres"));
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
    // The first query connects. Not as parameters of the startup message, which poolers refuse or drop.
    await session.script(
      [
        `set statement_timeout = ${options.statementTimeoutMs}`,
        `set lock_timeout = ${options.lockTimeoutMs}`,
        // A process that is frozen inside its transaction holds up every other one.
        `set idle_in_transaction_session_timeout = ${options.silenceMs}`,
      ].join("; "),
    );
  } catch (error) {
    void destroy();
    throw error;
  }
  return session;
}

/** Several results are an array of them; one is an array of rows. */
function isResult(value: unknown): boolean {
  return typeof value === "object" && value !== null && "command" in value && "statement" in value;
}

/** Every host that the address names, as postgres.js reads it, environment variables included; it connects to nothing. */
export function addressesOf({ url, tls, ca }: Pick<SessionOptions, "url" | "tls" | "ca">): Address[] {
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
