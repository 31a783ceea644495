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
import { MIGRATIONS, type Migration } from "../storage-sql/migrations.ts";
import { createReader, prepareReads } from "../storage-sql/queries.ts";
import { prepare, type SqlExecutor } from "../storage-sql/statement.ts";
import { createTransaction, prepareWrites } from "../storage-sql/writes.ts";
import { connectPostgres, endClient, execute, type Client, type ClientOptions } from "./client.ts";
import { toStorageError } from "./errors.ts";
import { db } from "./kit.ts";
import { migrate } from "./migrate.ts";

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
  /** For tests of migrations. */
  migrations?: readonly Migration[];
}

interface OpenStore {
  reader: Client;
  writer: Client;
}

/** What the running transaction must know of its connection. */
interface Fate {
  lost: StorageError | null;
}

export const CHANNEL = "assent_ledger";

const reads = prepareReads(db);
const writes = prepareWrites(db);
const countPing = prepare(db.updateTable("liveness").set({ pings: sql`pings + 1` }).where("id", "=", sql.lit(1)));
const LOCK_HEAD = "select size from ledger_head where id = 1 for update";

export function postgresStorage(options: PostgresStorageOptions): Storage {
  let store: OpenStore | null = null;
  let running: Fate | null = null;
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
      ...(onclose === undefined ? {} : { onclose }),
    });
  }

  async function open(): Promise<OpenStore> {
    const writer = client("assent writer", 1, () => {
      if (running !== null) running.lost ??= new StorageError("unavailable", "the connection to Postgres was lost inside a transaction");
    });
    const reader = client("assent reader", options.poolSize ?? 8);
    try {
      await migrate(writer, options.migrations ?? MIGRATIONS);
      await execute(writer, countPing, {});
      return { reader, writer };
    } catch (error) {
      await Promise.all([endClient(writer), endClient(reader)]);
      throw toStorageError(error, "open the Postgres store");
    }
  }

  async function transact<T>(work: (tx: StorageTransaction) => Promise<T>): Promise<T> {
    const { writer } = opened();
    const fate: Fate = { lost: null };
    let appended = false;
    let own = null as { thrown: unknown } | null;
    running = fate;
    try {
      // One round trip for both: they go out together, in this order.
      await Promise.all([writer.unsafe("begin isolation level read committed read write"), writer.unsafe(LOCK_HEAD)]);
      if (fate.lost !== null) throw fate.lost;
      const scope = transactionScope(writer, fate);
      let result: T;
      try {
        const tx = createTransaction(reads, writes, scope.executor);
        result = await work({
          ...tx,
          append(...args) {
            appended = true;
            return tx.append(...args);
          },
        });
      } catch (thrown) {
        scope.end();
        own = { thrown };
        throw thrown;
      }
      const failure = scope.end();
      if (failure !== null) throw failure;
      // Told by the commit itself: nobody hears of what was rolled back.
      const { command } = await commitAfter(writer, appended);
      if (fate.lost !== null) throw fate.lost;
      // Postgres answers the COMMIT of a failed transaction with ROLLBACK, and calls it a success.
      if (command !== "COMMIT") throw new StorageError("unavailable", `the transaction ended with ${command}`);
      return result;
    } catch (error) {
      if (fate.lost === null) await writer.unsafe("rollback").catch(() => undefined);
      // Whatever it is, and whatever else went wrong: nothing was committed, and the caller knows its own error.
      if (own !== null) throw own.thrown;
      throw toStorageError(error, "write to Postgres");
    } finally {
      running = null;
    }
  }

  const reader = createReader(reads, {
    async all(statement, values) {
      try {
        return (await execute(opened().reader, statement, values)).rows;
      } catch (error) {
        throw toStorageError(error, "read from Postgres");
      }
    },
    async snapshot(work) {
      try {
        return (await opened().reader.begin("isolation level repeatable read read only", (tx) =>
          work({ all: async (statement, values) => (await execute(tx as unknown as Client, statement, values)).rows }),
        )) as never;
      } catch (error) {
        throw toStorageError(error, "read from Postgres");
      }
    },
  });

  return {
    ...reader,
    name: "storage-postgres",
    exclusive: false,
    open: () =>
      enqueue(async () => {
        store ??= await open();
      }),
    close: () =>
      enqueue(async () => {
        if (store === null) return;
        const { reader: pool, writer } = store;
        store = null;
        await Promise.all([endClient(pool), endClient(writer)]);
      }),
    ping() {
      pinging ??= enqueue(async () => {
        try {
          await execute(opened().writer, countPing, {});
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

/** The executor of one transaction, which is of no use once the work is over or its connection is gone. */
function transactionScope(writer: Client, fate: Fate): { executor: SqlExecutor; end(): Error | null } {
  let failure: Error | null = null;
  let over = false;

  async function attempt<T>(run: () => Promise<T>): Promise<T> {
    if (over) throw new StorageError("unavailable", "the transaction is over: await everything inside the work of `write`");
    failure ??= fate.lost;
    // After a failed statement Postgres refuses every other.
    if (failure !== null) throw failure;
    try {
      const result = await run();
      if (fate.lost !== null) throw fate.lost;
      return result;
    } catch (error) {
      failure ??= toStorageError(error, "write to Postgres");
      throw failure;
    }
  }

  return {
    executor: {
      all: (statement, values) => attempt(async () => (await execute(writer, statement, values)).rows),
      run: (statement, values) => attempt(async () => (await execute(writer, statement, values)).count),
      // Sent together; Postgres takes them in order and the answers come together too.
      runMany: (statement, rows) => attempt(async () => void (await Promise.all(rows.map((row) => execute(writer, statement, row))))),
      fail(error) {
        failure ??= error;
        throw error;
      },
    },
    end() {
      over = true;
      return failure ?? fate.lost;
    },
  };
}
