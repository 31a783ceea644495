/**
 * One connection to Postgres. Statements of a session run only on this connection. Once the connection is lost, every
 * query rejects immediately, and a new connection needs a new session.
 */
import { clearTimeout, setImmediate, setTimeout } from "node:timers";
import type { Socket } from "node:net";
import postgres from "postgres";
import { postgresSettings, StorageError } from "../../src/storage/index.ts";
import type { SqlRow, SqlValue } from "../storage-sql/api.ts";
import { openSocket, type Address } from "./dial.ts";
import { isConnectionLoss, toStorageError } from "./postgres-errors.ts";

export interface SessionOptions {
  /** URL, which may contain several hosts: see `parseAddresses`. */
  url: string;
  /** Name of the connection in pg_stat_activity. */
  name: string;
  connectTimeoutMs: number;
  statementTimeoutMs: number;
  lockTimeoutMs: number;
  /** Maximum pause between two statements of a transaction. After a longer pause, the server ends the transaction. */
  silenceMs: number;
  tls: "disable" | "require" | "verify-full" | "from-url";
  /** Certificate authority of the server as PEM, if the operating system does not trust it. */
  ca?: string;
  /**
   * The session is lost if a response takes longer than this. Default: `statementTimeoutMs` + `lockTimeoutMs` + 5,000.
   */
  answerTimeoutMs?: number;
  onNotify?(payload: string): void;
}

export interface QueryResult {
  rows: SqlRow[];
  count: number;
  command: string;
}

export interface Session {
  /** Runs a prepared statement. Rejects with the error from Postgres, or StorageError. */
  query(sql: string, values: SqlValue[]): Promise<QueryResult>;
  /** Runs statements without parameters in one message, so that all of them run on the same connection. */
  script(sql: string): Promise<QueryResult[]>;
  /** Why the session can no longer be used; null while it can be used. */
  readonly lost: StorageError | null;
  /** Resolves when the session is lost. */
  readonly gone: Promise<void>;
  /** Number of queries that wait for a response. */
  readonly waiting: number;
  /** Number of warnings so far, and the newest warning. */
  readonly warned: { readonly count: number; readonly newest: string };
  lose(error: StorageError): void;
  /** Waits at most one second for running queries, and closes the connection. Resolves within two seconds. */
  end(): Promise<void>;
}

function integer(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value))
    throw new StorageError("corrupt", `the store contains the number ${text}, which a double cannot represent exactly`);
  return value;
}

const TYPES = {
  int8: { to: 20, from: [20], serialize: String, parse: integer },
  // The type that sum() over bigint returns.
  numeric: { to: 1700, from: [1700], serialize: String, parse: integer },
  bytea: {
    to: 17,
    from: [17],
    serialize: (bytes: Uint8Array) => `\\x${Buffer.from(bytes).toString("hex")}`,
    parse: (text: string) => new Uint8Array(Buffer.from(text.slice(2), "hex")),
  },
};

/**
 * Leaves only the schema of the store on the search path, or the current schema before the store is created. If the
 * search path is empty, as for hardened roles, the store is in `public`. Postgres searches its own schema first. In any
 * other schema, another user could create a table that hides one of the store's, or a function or operator that matches
 * a call better.
 */
const SEARCH_PATH = `select pg_catalog.set_config('search_path', pg_catalog.concat(coalesce(
    (select relnamespace::pg_catalog.regnamespace::pg_catalog.text from pg_catalog.pg_class
      where oid operator(pg_catalog.=) pg_catalog.to_regclass('ledger_head')),
    case when pg_catalog.current_schema() operator(pg_catalog.<>) 'pg_catalog'::pg_catalog.name
      then pg_catalog.quote_ident(pg_catalog.current_schema()) end,
    case when pg_catalog.current_setting('search_path') operator(pg_catalog.=)
      any (array['', '""', 'pg_catalog']) then 'public' end,
    'pg_catalog'), ', pg_temp'), false)`;

/** Enables the triggers that protect the store. Only a superuser can, so `checkServer` checks whether it succeeded. */
const TRIGGERS = `select pg_catalog.set_config('session_replication_role', 'origin', false) from pg_catalog.pg_roles
  where rolname operator(pg_catalog.=) current_user and rolsuper`;

function settingsOf(options: SessionOptions): Record<string, string> {
  return {
    statement_timeout: String(options.statementTimeoutMs),
    lock_timeout: String(options.lockTimeoutMs),
    // A process that freezes within a transaction would block all other processes.
    idle_in_transaction_session_timeout: String(options.silenceMs),
    default_transaction_isolation: "read committed",
    default_transaction_read_only: "off",
    default_transaction_deferrable: "off",
    // Fail instead of hiding rows.
    row_security: "off",
    // The warning of a commit that a failover may lose must arrive.
    client_min_messages: "warning",
    "plpgsql.extra_errors": "none",
  };
}

/** Connects to this address only. If that fails, rejects and closes the connection. */
export async function openSession(options: SessionOptions, address: Address): Promise<Session> {
  const session = new PostgresSession(options, address);
  try {
    // The first query connects. The settings are not in the startup message, because poolers reject or drop such
    // parameters. The first message has one short statement, because the role's own statement timeout applies to it.
    await Promise.all([
      session.script(`set statement_timeout = ${options.statementTimeoutMs}`),
      session.script(`${SEARCH_PATH}; ${postgresSettings("session", settingsOf(options))}; ${TRIGGERS}`),
    ]);
  } catch (error) {
    void session.destroy();
    throw error;
  }
  return session;
}

class PostgresSession implements Session {
  readonly gone: Promise<void>;
  lost: StorageError | null = null;
  waiting = 0;
  warned = { count: 0, newest: "" };
  private readonly options: SessionOptions;
  private readonly client: postgres.Sql<Record<string, never>>;
  private readonly answerTimeoutMs: number;
  private resolveGone: () => void = () => undefined;
  /** Reject functions of the waiting queries. */
  private readonly refusals = new Set<(error: StorageError) => void>();
  private timer: ReturnType<typeof setTimeout> | null = null;
  private socket: Socket | null = null;
  private hasDialled = false;
  private isEnding = false;
  private isCorked = false;

  constructor(options: SessionOptions, address: Address) {
    this.options = options;
    // Longer than the timeouts in Postgres, so that Postgres cancels a statement first.
    this.answerTimeoutMs = options.answerTimeoutMs ?? options.statementTimeoutMs + options.lockTimeoutMs + 5_000;
    this.gone = new Promise((resolve) => {
      this.resolveGone = resolve;
    });
    this.client = this.createClient(address);
  }

  private createClient(address: Address): postgres.Sql<Record<string, never>> {
    const { url, name, connectTimeoutMs, onNotify } = this.options;
    return postgres(url, {
      max: 1,
      idle_timeout: 0,
      max_lifetime: null,
      connect_timeout: connectTimeoutMs / 1000,
      // Postgres.js would otherwise query the types of arrays on its own, and ignore errors of that query.
      fetch_types: false,
      onnotice: ({ severity, message }: postgres.Notice) => {
        if (severity === "WARNING") this.warned = { count: this.warned.count + 1, newest: message ?? "" };
      },
      onnotify: (_channel: string, payload: string) => onNotify?.(payload),
      onclose: () => this.lose(connectionLostError()),
      // `dial` handles TLS, so postgres.js gets a socket that is already encrypted.
      ssl: false,
      host: address.host,
      socket: () => this.dial(address),
      connection: { application_name: name },
      types: TYPES,
    } as never) as unknown as postgres.Sql<Record<string, never>>;
  }

  /** Connects once. Prevents postgres.js from connecting again after the connection is lost. */
  private async dial(address: Address): Promise<Socket> {
    if (this.hasDialled) {
      const error = connectionLostError();
      this.lose(error);
      throw this.lost ?? error;
    }
    this.hasDialled = true;
    this.socket = await openSocket(address, this.options.connectTimeoutMs);
    return this.socket;
  }

  query(sql: string, values: SqlValue[]): Promise<QueryResult> {
    return this.answer(() =>
      this.client.unsafe(sql, values as never[], { prepare: true }).then((result) => ({
        rows: result as unknown as SqlRow[],
        count: result.count,
        command: result.command,
      })),
    );
  }

  script(sql: string): Promise<QueryResult[]> {
    return this.answer(() =>
      this.client.unsafe(sql).then((result) => {
        const all = (isResult(result[0]) ? result : [result]) as unknown as (SqlRow[] & {
          count: number;
          command: string;
        })[];
        return all.map((item) => ({ rows: [...item], count: item.count, command: item.command }));
      }),
    );
  }

  private async answer<T>(send: () => PromiseLike<T>): Promise<T> {
    if (this.lost !== null) throw this.lost;
    this.cork();
    if (this.isEnding) throw new StorageError("unavailable", "the connection to Postgres is being closed");
    this.waiting++;
    // Use one timer for all queries: the connection works as long as any query gets a response.
    this.timer ??= setTimeout(
      () => this.lose(new StorageError("unavailable", `Postgres did not respond within ${this.answerTimeoutMs} ms`)),
      this.answerTimeoutMs,
    );
    try {
      const result = await this.unlessLost(send());
      if (this.lost !== null) throw this.lost;
      return result;
    } catch (error) {
      if (isConnectionLoss(error)) this.lose(toStorageError(error, "reach Postgres"));
      throw error;
    } finally {
      this.waiting--;
      if (this.waiting > 0) this.timer?.refresh();
      else if (this.timer !== null) {
        clearTimeout(this.timer);
        this.timer = null;
      }
    }
  }

  /**
   * Combines statements that are sent together into one socket write. Postgres.js would write each kilobyte separately.
   */
  private cork(): void {
    const { socket } = this;
    if (this.isCorked || socket === null) return;
    this.isCorked = true;
    socket.cork();
    // Uncork after the immediate in which postgres.js writes its last bytes. Postgres.js schedules that immediate
    // before the next tick.
    process.nextTick(() =>
      setImmediate(() => {
        this.isCorked = false;
        socket.uncork();
      }),
    );
  }

  /**
   * Rejects when the session is lost. Does not use `Promise.race` with `gone`, because that would retain every response
   * until the session ends.
   */
  private unlessLost<T>(answer: PromiseLike<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.refusals.add(reject);
      answer.then(resolve, reject).then(() => this.refusals.delete(reject));
    });
  }

  lose(error: StorageError): void {
    if (this.lost !== null) return;
    this.lost = error;
    this.resolveGone();
    for (const refuse of this.refusals) refuse(error);
    void this.destroy();
  }

  /** Closes the session and discards queued statements, whose responses may never arrive. */
  async destroy(): Promise<void> {
    await this.client.end({ timeout: 0 }).catch(() => undefined);
    // Destroy the socket. Otherwise, a half-closed socket would stay open until a hanging server responds.
    this.socket?.destroy();
  }

  async end(): Promise<void> {
    this.isEnding = true;
    let late: ReturnType<typeof setTimeout> | undefined;
    const patient = new Promise<void>((resolve) => (late = setTimeout(resolve, 2000)));
    await Promise.race([this.client.end({ timeout: 1 }).catch(() => undefined), patient]);
    clearTimeout(late);
    this.lose(new StorageError("unavailable", "the connection to Postgres is closed"));
  }
}

function connectionLostError(): StorageError {
  return new StorageError("unavailable", "the connection to Postgres was lost");
}

/**
 * Distinguishes a single result, which is an array of rows, from the array of results that a message with several
 * statements returns.
 */
function isResult(value: unknown): boolean {
  return typeof value === "object" && value !== null && "command" in value && "statement" in value;
}

/**
 * Returns every host in the URL. Postgres.js parses the URL, and reads missing parts from environment variables such as
 * PGHOST. Does not connect.
 */
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
