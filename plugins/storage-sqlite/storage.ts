/**
 * The embedded store. Writes go through one connection, one transaction at a time; reads outside a
 * transaction go through another, so that they see committed state only although a transaction is
 * open while its work awaits. WAL lets the two run side by side.
 *
 * What a crash means: a transaction is in the store once its COMMIT returned, because
 * `synchronous = full` syncs the WAL before that. A COMMIT that fails may or may not be there; the
 * connection is closed then and not used again, since a second fsync would not tell the truth.
 */
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { sql } from "kysely";
import { StorageError, type Storage, type StorageTransaction } from "../../src/contract/storage.ts";
import { createCopying, prepareCopying } from "../storage-sql/copying.ts";
import { MIGRATIONS, type Migration } from "../storage-sql/migrations.ts";
import { createReader, prepareReads, readLeases } from "../storage-sql/queries.ts";
import { prepare, type SqlExecutor } from "../storage-sql/statement.ts";
import { createTransaction, prepareWrites } from "../storage-sql/writes.ts";
import { connectStore, type Connection } from "./connection.ts";
import { spoilsConnection, toStorageError } from "./errors.ts";
import { createPrivately, prepareFolder } from "./files.ts";
import { db } from "./kit.ts";
import { loadSqlite, type SqliteLibrary } from "./library.ts";
import { lockStore, type StoreLock } from "./lock.ts";
import { migrate, storedVersion } from "./migrate.ts";

export interface SqliteStorageOptions {
  /** The database file. Its folder is made when missing. `-wal`, `-shm` and `.lock` files stand beside it. */
  path: string;
  /** How long the lock of another program that writes to the file is waited for. Blocks the process meanwhile. */
  busyTimeoutMs?: number;
  /** For tests of migrations. */
  migrations?: readonly Migration[];
}

interface OpenStore {
  path: string;
  library: SqliteLibrary;
  /** Null where it was opened to be read only. */
  lock: StoreLock | null;
  reader: Connection;
  /** Null after a failure that spoilt it; the next write opens another. */
  writer: Connection | null;
}

const begin = { sql: "begin immediate", names: [] };
const commit = { sql: "commit", names: [] };
const reads = prepareReads(db);
const writes = prepareWrites(db);
const copies = prepareCopying(db);
const countPing = prepare(db.updateTable("liveness").set({ pings: sql`pings + 1` }).where("id", "=", sql.lit(1)));

export function sqliteStorage(options: SqliteStorageOptions): Storage {
  const busyTimeout = options.busyTimeoutMs ?? 2000;
  const migrations = options.migrations ?? MIGRATIONS;
  let store: OpenStore | null = null;
  /** The last of what must run one after another: opening, writes, closing. */
  let queue: Promise<unknown> = Promise.resolve();
  let pinging: Promise<void> | null = null;

  function enqueue<T>(job: () => Promise<T>): Promise<T> {
    const result = queue.then(job);
    queue = result.catch(() => undefined);
    return result;
  }

  function opened(): OpenStore {
    if (store === null) throw new StorageError("unavailable", `the store ${options.path} is not open`);
    return store;
  }

  function writerOf(open: OpenStore): Connection {
    if (open.lock === null) throw new StorageError("readonly", `the store ${open.path} was opened to be read only`);
    open.writer ??= connectStore(open.library, open.path, { busyTimeout });
    return open.writer;
  }

  function dropWriter(open: OpenStore): void {
    open.writer?.close();
    open.writer = null;
  }

  /** Undoes what the open transaction did; whatever it takes. */
  function rollback(open: OpenStore, because: unknown): void {
    try {
      if (spoilsConnection(because)) dropWriter(open);
      else open.writer?.exec("rollback");
    } catch {
      dropWriter(open);
    }
  }

  const transact = <T>(work: (tx: StorageTransaction) => Promise<T>): Promise<T> => run((db) => work(createTransaction(reads, writes, db)));

  async function run<T>(work: (db: SqlExecutor) => Promise<T>): Promise<T> {
    const open = opened();
    const connection = writerOf(open);
    try {
      connection.run(begin, {});
    } catch (error) {
      rollback(open, error);
      throw error;
    }
    const scope = transactionScope(connection);
    let result: T;
    try {
      result = await work(scope.executor);
    } catch (error) {
      rollback(open, scope.end() ?? error);
      throw error;
    }
    const failure = scope.end();
    if (failure !== null) {
      rollback(open, failure);
      throw failure;
    }
    try {
      connection.run(commit, {});
    } catch (error) {
      dropWriter(open);
      throw error;
    }
    return result;
  }

  const looks: Pick<SqlExecutor, "all"> = { all: async (statement, values) => opened().reader.all(statement, values) };
  const reader = createReader(reads, looks);

  return {
    ...reader,
    name: "storage-sqlite",
    exclusive: true,
    open: ({ readOnly = false } = {}) =>
      enqueue(async () => {
        store ??= readOnly ? await openToRead(options.path, busyTimeout) : await openStore(options.path, busyTimeout, migrations);
      }),
    schema: async () => ({ applied: storedVersion(opened().reader, opened().path), known: migrations.at(-1)?.version ?? 0 }),
    leases: (now) => readLeases(reads, looks, now),
    lease: (name, holder, now, until) => enqueue(() => run(async (db) => (await db.run(writes.lease, { name, holder, now, until })) === 1)),
    async backup(path) {
      const { library, path: own } = opened();
      createPrivately(path);
      // Of its own, so that neither reads nor writes wait for it.
      const connection = connectStore(library, own, { busyTimeout });
      try {
        connection.run({ sql: "vacuum into ?", names: ["path"] }, { path });
      } finally {
        connection.close();
      }
    },
    copying: createCopying(copies, looks, (work) => enqueue(() => run(work))),
    close: () =>
      enqueue(async () => {
        if (store === null) return;
        const closing = store;
        store = null;
        closing.reader.close();
        foldWal(closing.writer);
        dropWriter(closing);
        closing.lock?.release();
      }),
    ping() {
      // Probes come from anybody; however many, one commit answers them.
      pinging ??= enqueue(() => run(async (db) => void (await db.run(countPing, {})))).finally(() => {
        pinging = null;
      });
      return pinging;
    },
    write: (work) => enqueue(() => transact(work)),
  };
}

async function openStore(given: string, busyTimeout: number, migrations: readonly Migration[]): Promise<OpenStore> {
  if (given === ":memory:" || given === "") {
    throw new StorageError("unavailable", `the path "${given}" names no file; the store keeps its ledger in one`);
  }
  const library = await loadSqlite();
  const path = prepareFolder(given);
  // First of all: nothing touches the store's file before it is certain that nobody else has it.
  const lock = lockStore(library, path);
  let writer: Connection | null = null;
  try {
    createPrivately(path);
    writer = connectStore(library, path, { busyTimeout });
    migrate(writer, path, migrations);
    // SQLite opens a file that may not be written read-only, without a word.
    writer.run(countPing, {});
    const reader = connectStore(library, path, { busyTimeout, readOnly: true });
    return { path, library, lock, reader, writer };
  } catch (error) {
    writer?.close();
    lock.release();
    throw toStorageError(error, `open the store ${path}`);
  }
}

/** No lock, and nothing made or changed: the service may be running on it. */
async function openToRead(given: string, busyTimeout: number): Promise<OpenStore> {
  const path = resolve(given);
  if (!existsSync(path)) throw new StorageError("unavailable", `there is no store at ${path}`);
  const library = await loadSqlite();
  const reader = connectStore(library, path, { busyTimeout, readOnly: true });
  try {
    if (storedVersion(reader, path) === 0) throw new StorageError("corrupt", `${path} is not a store: it is empty`);
    return { path, library, lock: null, reader, writer: null };
  } catch (error) {
    reader.close();
    throw error;
  }
}

/** Leaves one file that is whole by itself; a convenience for whoever copies it. What is in the WAL is safe there as well. */
function foldWal(writer: Connection | null): void {
  try {
    writer?.exec("pragma wal_checkpoint(truncate)");
  } catch {
    // The next start does it.
  }
}

/** The executor of one transaction, which is of no use once the work is over. */
function transactionScope(connection: Connection): { executor: SqlExecutor; end(): Error | null } {
  let failure: Error | null = null;
  let over = false;

  async function attempt<T>(run: () => T): Promise<T> {
    if (over) throw new StorageError("unavailable", "the transaction is over: await everything inside the work of `write`");
    // After a failed statement SQLite may have rolled back: another one would stand on its own.
    if (failure !== null) throw failure;
    try {
      return run();
    } catch (error) {
      failure = error as Error;
      throw error;
    }
  }

  return {
    executor: {
      all: (statement, values) => attempt(() => connection.all(statement, values)),
      run: (statement, values) => attempt(() => connection.run(statement, values)),
      send: (statement, values) => attempt(() => void connection.run(statement, values)),
      runMany: (statement, rows) => attempt(() => rows.forEach((row) => connection.run(statement, row))),
      fail(error) {
        failure ??= error;
        throw error;
      },
    },
    end() {
      over = true;
      return failure;
    },
  };
}
