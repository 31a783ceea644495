/**
 * Postgres as the engine of the shared SQL storage. All writes of a process go through one session, one transaction at
 * a time. Each transaction first acquires the row lock of the ledger's head, so that processes take turns. Reads
 * outside a transaction go through a pool of other sessions. A transaction never continues on another connection,
 * because a session has only one connection and is lost with it (database-session.ts). In addition, every transaction
 * sets a random name. Triggers reject changes in a transaction without a name, and the message with the COMMIT verifies
 * the name.
 */
import { randomUUID } from "node:crypto";
import { StorageError, type StorageReader } from "../../src/storage/index.ts";
import {
  bindValues,
  createBundleReader,
  createReader,
  postgresSqlBuilder,
  postgresDialect,
  prepareReads,
  type WrittenHead,
  type SqlEngine,
  type SqlPurpose,
  type SqlQuery,
  type SqlRead,
  type SqlRow,
  type SqlTransaction,
} from "../storage-sql/api.ts";
import { toStorageError } from "./postgres-errors.ts";
import type { Address } from "./dial.ts";
import { connectToUsableHost } from "./hosts.ts";
import { findIndexFaults } from "./integrity.ts";
import { createAnnouncer } from "./announcer.ts";
import { findSchemaFaults } from "./schema-faults.ts";
import { createPool, type Pool } from "./pool.ts";
import { createProcessTable } from "./process-table.ts";
import { assertSessionPooling, checkServer } from "./server.ts";
import {
  parseAddresses,
  openSession,
  type QueryResult,
  type Session,
  type SessionOptions,
} from "./database-session.ts";

interface EngineOptions extends Omit<SessionOptions, "name" | "onNotify"> {
  poolSize: number;
  acceptUnsafeServer: boolean;
  /** False if the server does not support NOTIFY. */
  notify: boolean;
}

const NOTIFY_CHANNEL = "assent_ledger";
/** Timeout of a migration, and of the wait for another process that runs it. Milliseconds. */
const MIGRATION_TIMEOUT_MS = 600_000;
/**
 * Timeout of statements on the table of processes. Short, because decisions wait for them after a failover.
 * Milliseconds.
 */
const PROCESS_PATIENCE = 2_000;
/** Delay before the listener reconnects. Milliseconds. */
const LISTEN_AGAIN = 200;

const reads = prepareReads(postgresSqlBuilder, postgresDialect);
/** Reads the same row as `reads.head`, and locks it. */
const LOCK_HEAD = `${reads.head.sql} for update`;
/** Makes a commit wait for the disk, whatever the settings of the server, database or role are. */
const DURABLE =
  "pg_catalog.set_config('synchronous_commit', case when pg_catalog.current_setting('synchronous_commit') = 'remote_apply' then 'remote_apply' else 'on' end, true)";
/**
 * Disables the statement timeout for the commit. The timeout would cancel the wait for a synchronous standby. Other
 * processes would then see entries that a failover may lose, and would reject the new primary without these entries.
 */
const PATIENT = "set local statement_timeout = 0";

export class PostgresEngine implements SqlEngine {
  readonly name = "storage-postgres";
  readonly exclusive = false;
  readonly pipelined = true;
  readonly watch?: (changed: (size?: number) => void) => Promise<() => Promise<void>>;
  private readonly options: EngineOptions;
  private newestTimeline = 0;
  private pool: Pool | null = null;
  private writer: Session | null = null;
  private migrator: Session | null = null;
  private isReadOnly = false;
  private checkReader: ((reader: StorageReader) => Promise<void>) | null = null;
  /** Open sessions with the timelines of their servers; 0 if a server does not report its timeline. */
  private readonly timelines = new Map<Session, number>();
  /** The table of processes. It uses a separate session (process-table.ts) with short timeouts. */
  readonly processes: ReturnType<typeof createProcessTable>;
  /**
   * Sends NOTIFY on a reader's session, because NOTIFY within the transaction would acquire a global lock of the server
   * at the commit.
   */
  private readonly announcer: ReturnType<typeof createAnnouncer> | null;

  constructor(options: EngineOptions) {
    this.options = options;
    this.processes = createProcessTable(reads, () =>
      connectToUsableHost(parseAddresses(options), async (address) => {
        const ms = PROCESS_PATIENCE;
        const sessionOptions = {
          ...options,
          name: "assent process",
          connectTimeoutMs: Math.min(options.connectTimeoutMs, ms),
        };
        const patience = { statementTimeoutMs: ms, lockTimeoutMs: ms, answerTimeoutMs: ms + 1_000 };
        const candidate = await openSession({ ...sessionOptions, ...patience }, address);
        return this.checked(candidate, this.isReadOnly, () => Promise.resolve());
      }),
    );
    this.announcer = options.notify
      ? createAnnouncer((size) =>
          this.opened().shared(async (session) => void (await session.script(`notify ${NOTIFY_CHANNEL}, '${size}'`))),
        )
      : null;
    if (options.notify) this.watch = (changed) => listen(options, changed);
  }

  toStorageError(error: unknown, doing: string): StorageError {
    return toStorageError(error, doing);
  }

  async open({ readOnly }: { readOnly: boolean }): Promise<void> {
    this.isReadOnly = readOnly;
    // Transactions of readers do not block other processes, so they can be idle for as long as the statement timeout.
    this.pool = createPool(this.options.poolSize, () =>
      this.session(readOnly ? "assent audit" : "assent reader", { silenceMs: this.options.statementTimeoutMs }),
    );
    if (readOnly) return;
    try {
      const opened = await this.session("assent writer");
      this.writer = opened;
      await this.pool.alone((reader) => assertSessionPooling(opened, reader));
    } catch (error) {
      const failed = this.pool;
      this.pool = null;
      await Promise.all([failed?.end(), this.writer?.end()]);
      this.writer = null;
      throw error;
    }
  }

  async close(): Promise<void> {
    await this.announcer?.end();
    const [readers, own, migrating] = [this.pool, this.writer, this.migrator];
    this.pool = null;
    this.writer = null;
    this.migrator = null;
    await Promise.all([readers?.end(), own?.end(), migrating?.end(), this.processes.end()]);
  }

  readonly query: SqlQuery = (sql, values) =>
    this.opened().shared(async (session) => (await session.query(sql, values)).rows);

  integrityFaults(): Promise<string[]> {
    return this.opened().alone(findIndexFaults);
  }

  schemaFaults(statements: readonly string[]): Promise<string[]> {
    return this.opened().alone((session) => findSchemaFaults(session, statements));
  }

  snapshot<T>(work: (query: SqlQuery) => Promise<T>): Promise<T> {
    return this.opened().alone(async (session) => {
      await session.script("begin isolation level repeatable read read only");
      try {
        return await work(async (sql, values) => (await session.query(sql, values)).rows);
      } finally {
        await rollback(session);
      }
    });
  }

  onConnection(check: (reader: StorageReader) => Promise<void>): void {
    this.checkReader = check;
  }

  async begin(purpose: SqlPurpose, reads: readonly SqlRead[] = []): Promise<SqlTransaction> {
    this.opened();
    const session = await this.sessionFor(purpose);
    const name = randomUUID();
    const settings = [`pg_catalog.set_config('assent.transaction', '${name}', true)`, DURABLE];
    if (purpose === "copy") settings.push("pg_catalog.set_config('assent.copying', 'on', true)");
    const start = session.script(`begin isolation level read committed read write; select ${settings.join(", ")}`);
    const locks = purpose === "migrate" || purpose === "aside" ? [] : [{ sql: LOCK_HEAD, values: [] }];
    try {
      // Send the statements together, in this order, to need one round trip. Each statement sees what was committed
      // before it began, so the reads see everything that earlier holders of the lock committed.
      const queries = [...locks, ...reads].map((item) => session.query(item.sql, item.values));
      const [head, ...rows] = await answersOf(start, queries);
      return transactionOf(
        session,
        name,
        (size) => this.announcer?.moved(size),
        head === undefined ? {} : { head, reads: rows },
      );
    } catch (error) {
      await rollback(session);
      throw error;
    }
  }

  private async session(name: string, more: Partial<SessionOptions> = {}): Promise<Session> {
    const addresses = parseAddresses(this.options);
    const open = (mayBeStandby: boolean): Promise<Session> =>
      connectToUsableHost(addresses, (address) =>
        this.sessionAt({ ...this.options, ...more, name }, address, mayBeStandby),
      );
    // Prefer the primary, because a standby may lag behind, and an audit would then miss the newest entries.
    if (!this.isReadOnly || addresses.length === 1) return open(this.isReadOnly);
    return open(false).catch(() => open(true));
  }

  /**
   * Closes the sessions to servers that a failover has replaced. A paused or disconnected server closes no connections,
   * so its sessions would wait until their timeouts.
   */
  private loseOlder(timeline: number): void {
    for (const [one, earlier] of this.timelines) {
      if (earlier === 0 || earlier >= timeline) continue;
      one.lose(
        new StorageError(
          "unavailable",
          `Postgres failed over from timeline ${earlier} to another server on ${timeline}`,
        ),
      );
    }
  }

  /** Checks the server of a session. Returns the session if the server is usable, and ends it otherwise. */
  private async checked(
    candidate: Session,
    mayBeStandby: boolean,
    more: (timeline: number) => Promise<void>,
  ): Promise<Session> {
    try {
      const timeline = await checkServer(candidate, {
        readOnly: this.isReadOnly,
        mayBeStandby,
        acceptUnsafe: this.options.acceptUnsafeServer,
        newestTimeline: () => this.newestTimeline,
      });
      this.loseOlder(timeline);
      await more(timeline);
      this.timelines.set(candidate, timeline);
      void candidate.gone.then(() => this.timelines.delete(candidate));
      return candidate;
    } catch (error) {
      void candidate.end();
      throw error;
    }
  }

  /** Opens a session to a server, and returns it once the server was checked. */
  private async sessionAt(sessionOptions: SessionOptions, address: Address, mayBeStandby: boolean): Promise<Session> {
    const candidate = await openSession(sessionOptions, address);
    return this.checked(candidate, mayBeStandby, async (timeline) => {
      await this.checkReader?.(
        createReader(
          reads,
          {
            all: async (statement, values) =>
              (await candidate.query(statement.sql, bindValues(statement, values, false))).rows,
          },
          createBundleReader(reads),
        ),
      );
      // Update this only after the checks, because a rejected server does not count as used.
      this.newestTimeline = Math.max(this.newestTimeline, timeline);
    });
  }

  private opened(): Pool {
    if (this.pool === null) throw new StorageError("unavailable", "the Postgres store is not open");
    return this.pool;
  }

  private async sessionFor(purpose: SqlPurpose): Promise<Session> {
    if (purpose === "migrate") {
      const { statementTimeoutMs, lockTimeoutMs } = this.options;
      const patience = {
        statementTimeoutMs: Math.max(statementTimeoutMs, MIGRATION_TIMEOUT_MS),
        lockTimeoutMs: Math.max(lockTimeoutMs, MIGRATION_TIMEOUT_MS),
        silenceMs: statementTimeoutMs,
      };
      if (this.migrator === null || this.migrator.lost !== null)
        this.migrator = await this.session("assent migration", patience);
      return this.migrator;
    }
    void this.migrator?.end();
    this.migrator = null;
    if (this.writer === null || this.writer.lost !== null) this.writer = await this.session("assent writer");
    return this.writer;
  }
}

/**
 * Waits for all responses. If several statements failed, rejects with the error of the first, because it caused the
 * others.
 */
async function answersOf(start: Promise<unknown>, queries: readonly Promise<QueryResult>[]): Promise<SqlRow[][]> {
  await Promise.allSettled([start, ...queries]);
  await start;
  const rows: SqlRow[][] = [];
  for (const query of queries) rows.push((await query).rows);
  return rows;
}

function transactionOf(
  session: Session,
  name: string,
  announce: (size: number) => void,
  locked: Pick<SqlTransaction, "head" | "reads">,
): SqlTransaction {
  return {
    ...locked,
    async query(sql, values) {
      const { rows, count } = await session.query(sql, values);
      return { rows, changes: count };
    },
    async commit(moved) {
      // The first division fails unless this transaction is running. The second division fails if the stored head
      // differs from the written head; this check is needed because the update of the head was not awaited. A failure
      // rejects the whole message.
      const proof = [
        `select 1 / (coalesce(pg_catalog.current_setting('assent.transaction', true), '') = '${name}')::integer`,
        ...(moved === null ? [] : [`select 1 / (${isStoredHead(moved)})::integer`]),
      ].join("; ");
      const before = session.warned.count;
      const results = await session.script(`${proof}; ${PATIENT}; commit`);
      const command = results.at(-1)?.command;
      // Postgres answers the COMMIT of a failed transaction with ROLLBACK, and reports success.
      if (command !== "COMMIT") throw new StorageError("unavailable", `the transaction ended with ${command}`);
      // If the wait for a synchronous standby is cancelled, Postgres sends a warning and reports success.
      if (session.warned.count > before)
        throw new StorageError(
          "unavailable",
          `Postgres warned of the commit, which a failover may lose: ${session.warned.newest}`,
        );
      if (moved !== null) announce(moved.size);
    },
    rollback: () => rollback(session),
  };
}

/** Returns an SQL condition that is true if the stored head equals this head. */
function isStoredHead({ size, epoch, root }: WrittenHead): string {
  const bytes = `pg_catalog.decode('${Buffer.from(root).toString("hex")}', 'hex')`;
  return `exists (select 1 from ledger_head where id = 1 and size = ${size} and epoch = ${epoch} and root = ${bytes})`;
}

/**
 * Rolls back. If there is no response, closes the session, because the next transaction must not begin within this
 * transaction.
 */
async function rollback(session: Session): Promise<void> {
  try {
    if (session.lost === null) await session.script("rollback");
  } catch (error) {
    session.lose(toStorageError(error, "roll back"));
  }
}

/**
 * Listens for announcements, and reconnects after a lost connection. Misses announcements until it is connected again.
 */
async function listen(options: EngineOptions, changed: (size?: number) => void): Promise<() => Promise<void>> {
  let stopped = false;
  let session: Session | null = null;
  let wake: () => void = () => {};
  const stop = new Promise<void>((resolve) => (wake = resolve));

  // Any client can notify, so a payload that is not a number counts as a hint without a size.
  const onNotify = (payload: string): void => changed(/^\d{1,15}$/.test(payload) ? Number(payload) : undefined);

  async function connect(): Promise<Session> {
    const listener = await connectToUsableHost(parseAddresses(options), async (address) => {
      const candidate = await openSession({ ...options, name: "assent listener", onNotify }, address);
      try {
        // A standby rejects LISTEN.
        await candidate.script(`listen ${NOTIFY_CHANNEL}`);
        return candidate;
      } catch (error) {
        void candidate.end();
        throw error;
      }
    });
    changed();
    return listener;
  }
  async function keepListening(first: Session): Promise<void> {
    session = first;
    while (!stopped) {
      await Promise.race([session?.gone, stop]);
      if (stopped) break;
      await Promise.race([stop, new Promise((resolve) => setTimeout(resolve, LISTEN_AGAIN).unref?.())]);
      if (!stopped) session = await connect().catch(() => null);
    }
    await session?.end();
  }
  const keeping = keepListening(
    await connect().catch((error: unknown) => {
      throw toStorageError(error, "listen to Postgres");
    }),
  );
  return async () => {
    stopped = true;
    wake();
    await keeping;
  };
}
