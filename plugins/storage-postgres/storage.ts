/**
 * The store for more than one process. All writes of a process go through one connection, one
 * transaction at a time, and each takes the row lock of the ledger's head first: the processes take
 * turns. Reads outside a transaction go through a pool.
 *
 * postgres.js connects again by itself, and a statement that was meant for a transaction whose
 * connection is gone would then stand alone. So a lost connection marks the running transaction
 * lost at once, before anything else can be sent.
 */
import { sql } from "kysely";
import { StorageError, type Storage, type StorageTransaction } from "../../src/contract/storage.ts";
import { createCopying, prepareCopying } from "../storage-sql/copying.ts";
import { MIGRATIONS, type Migration } from "../storage-sql/migrations.ts";
import { createReader, prepareReads, readLeases } from "../storage-sql/queries.ts";
import { param, prepare, type SqlExecutor, type SqlRow } from "../storage-sql/statement.ts";
import { createTransaction, prepareWrites } from "../storage-sql/writes.ts";
import { answered, connectPostgres, endClient, execute, type Client, type ClientOptions } from "./client.ts";
import { toStorageError } from "./errors.ts";
import { db } from "./kit.ts";
import { migrate, storedVersion } from "./migrate.ts";
import { Fate, transactionScope } from "./transaction.ts";

export interface PostgresStorageOptions {
  /** `postgres://user:password@host:port/database`. */
  url: string;
  /** Connections for reads; writes and notifications have one each besides. Default 8. */
  poolSize?: number;
  /** Longest statement, and longest silence inside a transaction. Default 30,000. */
  statementTimeoutMs?: number;
  /** Longest wait for the ledger's lock. Default 10,000. */
  lockTimeoutMs?: number;
  /** Default 10,000. */
  connectTimeoutMs?: number;
  /** Default: as the address says. */
  tls?: ClientOptions["tls"];
  /** For `verify-full`: PEM of the authority, where the system does not know it. */
  ca?: string;
  /** For tests of migrations. */
  migrations?: readonly Migration[];
}

interface OpenStore {
  reader: Client;
  /** Null where it was opened to be read only. */
  writer: Client | null;
}

export const CHANNEL = "assent_ledger";

const reads = prepareReads(db);
const writes = prepareWrites(db);
const copies = prepareCopying(db);
const countPing = prepare(db.updateTable("liveness").set({ pings: sql`pings + 1` }).where("id", "=", sql.lit(1)));
const DAY = 86_400_000;
const forgetLeases = prepare(db.deleteFrom("leases").where("until", "<", param("before")));
/** The same row as `reads.head`, locked. */
const LOCK_HEAD = `${reads.head.sql} for update`;

export function postgresStorage(options: PostgresStorageOptions): Storage {
  const migrations = options.migrations ?? MIGRATIONS;
  let store: OpenStore | null = null;
  let running: Fate | null = null;
  /** Longer than Postgres itself takes to give up. */
  const patience = (options.statementTimeoutMs ?? 30_000) + (options.lockTimeoutMs ?? 10_000) + 5_000;
  /** The last of what must run one after another: opening, writes, closing. */
  let queue: Promise<unknown> = Promise.resolve();
  let pinging: Promise<void> | null = null;

  function enqueue<T>(job: () => Promise<T>): Promise<T> {
    const result = queue.then(job);
    queue = result.catch(() => undefined);
    return result;
  }

  function opened(): OpenStore {
    if (store === null) throw new StorageError("unavailable", "the Postgres store is not open");
    return store;
  }

  function client(name: string, max: number, onclose?: () => void): Client {
    return connectPostgres({
      url: options.url, max, name,
      connectTimeoutMs: options.connectTimeoutMs ?? 10_000,
      statementTimeoutMs: options.statementTimeoutMs ?? 30_000,
      lockTimeoutMs: options.lockTimeoutMs ?? 10_000,
      tls: options.tls ?? "from-url",
      ...(options.ca === undefined ? {} : { ca: options.ca }),
      ...(onclose === undefined ? {} : { onclose }),
    });
  }

  function connectWriter(): Client {
    const made: Client = client("assent writer", 1, () => {
      // One that was given up may close late: that is not the end of its successor.
      if (running === null || store?.writer !== made) return;
      running.closed = true;
      running.lose(new StorageError("unavailable", "the connection to Postgres was lost inside a transaction"));
    });
    return made;
  }

  async function open(): Promise<OpenStore> {
    const writer = connectWriter();
    const reader = client("assent reader", options.poolSize ?? 8);
    try {
      await migrate(writer, migrations);
      await execute(writer, countPing, {});
      // Every process that ever ran had one of its own.
      await execute(writer, forgetLeases, { before: Date.now() - DAY });
      return { reader, writer };
    } catch (error) {
      await Promise.all([endClient(writer), endClient(reader)]);
      throw toStorageError(error, "open the Postgres store");
    }
  }

  /** Looks, and writes nothing: others may be at work on it. */
  async function openToRead(): Promise<OpenStore> {
    const reader = client("assent audit", options.poolSize ?? 8);
    try {
      if ((await storedVersion(reader)) === 0) throw new StorageError("unavailable", "there is no store in this database");
      return { reader, writer: null };
    } catch (error) {
      await endClient(reader);
      throw toStorageError(error, "open the Postgres store");
    }
  }

  function writerOf({ writer }: OpenStore): Client {
    if (writer === null) throw new StorageError("readonly", "the Postgres store was opened to be read only");
    return writer;
  }

  async function transact<T>(work: (tx: StorageTransaction) => Promise<T>): Promise<T> {
    let appended = false;
    return run(
      (db) => {
        const tx = createTransaction(reads, writes, db);
        return work({
          ...tx,
          append(...args) {
            appended = true;
            return tx.append(...args);
          },
        });
      },
      () => appended,
    );
  }

  async function run<T>(work: (db: SqlExecutor) => Promise<T>, appended: () => boolean = () => false): Promise<T> {
    const writer = writerOf(opened());
    const fate = new Fate(patience);
    let own = null as { thrown: unknown } | null;
    running = fate;
    try {
      // One round trip for both: they go out together, in this order.
      const [, locked] = await fate.answer(Promise.all([writer.unsafe("begin isolation level read committed read write"), writer.unsafe(LOCK_HEAD, [], { prepare: true })]));
      if (fate.lost !== null) throw fate.lost;
      const scope = transactionScope(writer, fate, locked as unknown as SqlRow[], { head: reads.head, moveHead: writes.moveHead });
      let result: T;
      try {
        result = await work(scope.executor);
      } catch (thrown) {
        scope.end();
        own = { thrown };
        throw thrown;
      }
      const failure = scope.end();
      if (failure !== null) throw failure;
      // Told by the commit itself: nobody hears of what was rolled back.
      const { command } = await fate.answer(commitAfter(writer, appended()));
      // What was only sent has its answers now: they come in order. A failure in it has made the commit a rollback.
      await scope.sent();
      // Postgres answers the COMMIT of a failed transaction with ROLLBACK, and calls it a success.
      if (command !== "COMMIT") throw new StorageError("unavailable", `the transaction ended with ${command}`);
      return result;
    } catch (error) {
      if (fate.lost === null) await fate.answer(writer.unsafe("rollback")).catch(() => undefined);
      // Whatever it is, and whatever else went wrong: nothing was committed, and the caller knows its own error.
      if (own !== null) throw own.thrown;
      throw toStorageError(error, "write to Postgres");
    } finally {
      running = null;
      if (fate.lost !== null && !fate.closed) replaceWriter();
    }
  }

  /** The next transaction must not begin inside the one that gave no answer. */
  function replaceWriter(): void {
    if (store === null || store.writer === null) return;
    void endClient(store.writer);
    store.writer = connectWriter();
  }

  const looks: Pick<SqlExecutor, "all"> = {
    async all(statement, values) {
      try {
        return (await answered(execute(opened().reader, statement, values), patience)).rows;
      } catch (error) {
        throw toStorageError(error, "read from Postgres");
      }
    },
  };
  const reader = createReader(reads, {
    ...looks,
    async snapshot(work) {
      try {
        return (await answered(opened().reader.begin("isolation level repeatable read read only", (tx) =>
          work({ all: async (statement, values) => (await execute(tx as unknown as Client, statement, values)).rows }),
        ), patience)) as never;
      } catch (error) {
        throw toStorageError(error, "read from Postgres");
      }
    },
  });

  return {
    ...reader,
    name: "storage-postgres",
    exclusive: false,
    open: ({ readOnly = false } = {}) =>
      enqueue(async () => {
        store ??= await (readOnly ? openToRead() : open());
      }),
    async schema() {
      try {
        return { applied: await storedVersion(opened().reader), known: migrations.at(-1)?.version ?? 0 };
      } catch (error) {
        throw toStorageError(error, "read from Postgres");
      }
    },
    leases: (now) => readLeases(reads, looks, now),
    lease: (name, holder, now, until) =>
      enqueue(async () => {
        try {
          return (await answered(execute(writerOf(opened()), writes.lease, { name, holder, now, until }), patience)).count === 1;
        } catch (error) {
          throw toStorageError(error, "write to Postgres");
        }
      }),
    copying: createCopying(copies, { all: async (statement, values) => (await execute(opened().reader, statement, values)).rows }, (work) => enqueue(() => run(work))),
    close: () =>
      enqueue(async () => {
        if (store === null) return;
        const { reader: pool, writer } = store;
        store = null;
        await Promise.all([endClient(pool), ...(writer === null ? [] : [endClient(writer)])]);
      }),
    ping() {
      pinging ??= enqueue(async () => {
        try {
          await answered(execute(writerOf(opened()), countPing, {}), patience);
        } catch (error) {
          throw toStorageError(error, "write to Postgres");
        }
      }).finally(() => {
        pinging = null;
      });
      return pinging;
    },
    write: (work) => enqueue(() => transact(work)),
    async watch(changed) {
      const listening = client("assent listener", 1);
      // The second function is called whenever the channel is listened to anew: what was told meanwhile is lost.
      await listening.listen(CHANNEL, () => changed(), () => changed());
      return () => endClient(listening);
    },
  };
}

async function commitAfter(writer: Client, appended: boolean): Promise<{ command: string }> {
  const sent = appended ? [writer.unsafe(`notify ${CHANNEL}`), writer.unsafe("commit")] : [writer.unsafe("commit")];
  const results = await Promise.all(sent);
  return { command: results.at(-1)?.command ?? "nothing" };
}
