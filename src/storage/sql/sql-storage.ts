/**
 * The storage contract over any SQL database. An engine provides the connection and transactions; the order of transactions,
 * the schema, the statements and the meaning of failures are the same for all databases and are here.
 */
import { sql, type Kysely } from "kysely";
import { StorageError, type Storage, type StorageTransaction } from "../../contract/storage.ts";
import { createBundles, UNBUNDLED_ENTRIES } from "./bundles.ts";
import { retryConflicts } from "./conflicts.ts";
import { createCopying, prepareCopying } from "./copying.ts";
import { cutBack, prepareCut } from "./cut-back.ts";
import type { SqlDialect } from "./dialect.ts";
import type { SqlEngine, SqlPurpose, SqlQuery } from "./engine.ts";
import { lastingLeases, prepareLeases } from "./leases.ts";
import { createTransactionLimits, findTotalFaults } from "./limits.ts";
import { createPrefetchedRows, listLockReads, prepareLockReads } from "./lock-reads.ts";
import { migrate, listSchemaStatements, readStoredVersion } from "./run-migrations.ts";
import { MIGRATIONS, type Migration } from "./migrations.ts";
import { findAgentNameFaults } from "./open-actions.ts";
import { createReader, prepareReads } from "./queries.ts";
import type { Tables } from "./table-schema.ts";
import { TransactionScope } from "./scope.ts";
import { foldSums, createStatusChangeCollector } from "./sums.ts";
import { bindValues, prepare, type SqlExecutor } from "./statement.ts";
import { findBundleFaults, createBundler } from "./upkeep.ts";
import { createTransaction, prepareWrites } from "./writes.ts";

export interface SqlStorageOptions {
  /** For tests of migrations. */
  migrations?: readonly Migration[];
  /** Number of the newest entries that keep their bytes in their rows. For tests. */
  unbundledEntries?: number;
}

type Statements = ReturnType<typeof prepareAll>;
const prepared = new WeakMap<SqlDialect, Statements>();

/** Returns the dialect's statements, which are compiled once. */
function statementsOf(dialect: SqlDialect): Statements {
  const statements = prepared.get(dialect) ?? prepareAll(dialect.db as unknown as Kysely<Tables>, dialect);
  prepared.set(dialect, statements);
  return statements;
}

function prepareAll(db: Kysely<Tables>, dialect: SqlDialect) {
  return {
    reads: prepareReads(db, dialect),
    writes: prepareWrites(db, dialect),
    copies: prepareCopying(db),
    cuts: prepareCut(db),
    countPing: prepare(
      db
        .updateTable("liveness")
        .set({ pings: sql`pings + 1` })
        .where("id", "=", sql.lit(1)),
    ),
    leases: prepareLeases(db, dialect.now),
    lockReads: prepareLockReads(db),
  };
}

/** Serialises opening, transactions and closing. */
type Queue = <T>(job: () => Promise<T>) => Promise<T>;

function createQueue(): Queue {
  let last: Promise<unknown> = Promise.resolve();
  return (job) => {
    const result = last.then(job);
    last = result.catch(() => undefined);
    return result;
  };
}

interface Access {
  state: "closed" | "open" | "read only";
  assertOpen(): void;
  /**
   * Runs the work in one transaction, and resolves when it is durable.
   *
   * @param readFrom sequence number from which on the work probably reads the ledger: these reads are sent with the lock
   */
  transact<T>(purpose: SqlPurpose, work: (db: SqlExecutor) => Promise<T>, readFrom?: number): Promise<T>;
  /** Runs reads outside of transactions, and retries them after a conflict. */
  read<T>(work: () => Promise<T>): Promise<T>;
}

/** Converts errors of the engine to `StorageError`. `doing` completes "cannot …". */
async function orStorageError<T>(engine: SqlEngine, doing: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw engine.toStorageError(error, doing);
  }
}

const READ_ONLY = "the store was opened to be read only";

function createAccess(engine: SqlEngine, dialect: SqlDialect, statements: Statements): Access {
  const { reads, writes } = statements;
  const access: Access = {
    state: "closed",
    assertOpen() {
      if (access.state === "closed") throw new StorageError("unavailable", `the store of ${engine.name} is not open`);
    },
    read: (work) =>
      retryConflicts(() => {
        access.assertOpen();
        return orStorageError(engine, "read from the store", work);
      }),
    async transact(purpose, work, readFrom) {
      access.assertOpen();
      if (access.state === "read only") throw new StorageError("readonly", READ_ONLY);
      const tx = await orStorageError(engine, "write to the store", () =>
        engine.begin(purpose, readFrom === undefined ? [] : listLockReads(statements.lockReads, readFrom)),
      );
      const scope = new TransactionScope(
        engine,
        dialect,
        tx,
        writes,
        createPrefetchedRows(tx, reads, readFrom ?? null),
      );
      let result: Awaited<ReturnType<typeof work>>;
      try {
        result = await work(scope);
      } catch (thrown) {
        const failure = scope.abandon();
        await scope.answered().catch(() => undefined);
        await tx.rollback(failure ?? thrown);
        // Nothing was committed. Rethrow the caller's own error.
        throw thrown;
      }
      let failure: Error;
      try {
        const lost = scope.end();
        if (lost !== null) throw lost;
        if (engine.pipelined !== true) await scope.answered();
        // Earlier statements get their responses before the commit does.
        const committed = tx.commit(scope.moved);
        committed.catch(() => undefined);
        await scope.answered();
        await committed;
        if (scope.erased) await engine.scrub?.();
        return result;
      } catch (error) {
        failure = engine.toStorageError(error, "write to the store");
      }
      await tx.rollback(failure);
      throw failure;
    },
  };
  return access;
}

export function createSqlStorage(
  engine: SqlEngine,
  dialect: SqlDialect,
  { migrations = MIGRATIONS, unbundledEntries = UNBUNDLED_ENTRIES }: SqlStorageOptions = {},
): Storage {
  const newest = migrations.at(-1)?.version ?? 0;
  const statements = statementsOf(dialect);
  const { reads, writes, leases } = statements;
  const enqueue = createQueue();
  const access = createAccess(engine, dialect, statements);
  const readVersion = (): Promise<number> => readStoredVersion(engine.query, dialect, migrations);
  let pinging: Promise<void> | null = null;

  /** Runs a transaction that does not move the head. Other transactions can run while it waits to be retried. */
  const aside = <T>(work: (db: SqlExecutor) => Promise<T>): Promise<T> =>
    retryConflicts(() => enqueue(() => access.transact("aside", work)));

  const readerOver = (query: SqlQuery): Pick<SqlExecutor, "all"> => ({
    all: (statement, values) => query(statement.sql, bindValues(statement, values, dialect.packed !== null)),
  });
  const unchecked = readerOver((text, values) => engine.query(text, values));
  const outside: Pick<SqlExecutor, "all"> = {
    all: (statement, values) => access.read(() => unchecked.all(statement, values)),
  };
  const snapshot = engine.snapshot?.bind(engine);
  const bundles = createBundles(reads);
  const reader = createReader(
    reads,
    {
      ...outside,
      ...(snapshot === undefined
        ? {}
        : {
            snapshot: <T>(work: (db: Pick<SqlExecutor, "all">) => Promise<T>): Promise<T> =>
              access.read(() => snapshot((query) => work(readerOver(query)))),
          }),
    },
    bundles,
  );
  const makeBundle = createBundler({ reads, writes, reader: outside, aside, unbundledEntries });

  async function open(readOnly: boolean): Promise<void> {
    await engine.open({ readOnly });
    try {
      if (readOnly) {
        if ((await readVersion()) === 0) throw new StorageError("unavailable", "there is no store in this database");
        access.state = "read only";
        return;
      }
      await migrate(engine, dialect, migrations);
      access.state = "open";
      // Fail now if the database cannot be written, and not at the first decision.
      await access.transact("aside", async (db) => {
        await db.run(statements.countPing, {});
        await db.run(leases.forget, {});
      });
    } catch (error) {
      access.state = "closed";
      await engine.close();
      throw error;
    }
  }

  return {
    ...reader,
    name: engine.name,
    exclusive: engine.exclusive,
    open: ({ readOnly = false } = {}) =>
      enqueue(async () => {
        if (access.state === "closed") await orStorageError(engine, "open the store", () => open(readOnly));
      }),
    schema: async () => ({ applied: await access.read(readVersion), known: newest }),
    close: () =>
      enqueue(async () => {
        if (access.state === "closed") return;
        access.state = "closed";
        await engine.close();
      }),
    ping() {
      // One commit answers all waiting probes, because unauthenticated callers can send any number.
      pinging ??= aside(async (db) => void (await db.run(statements.countPing, {}))).finally(() => {
        pinging = null;
      });
      return pinging;
    },
    write: <T>(work: (tx: StorageTransaction) => Promise<T>, { readFrom }: { readFrom?: number } = {}) =>
      enqueue(() =>
        access.transact(
          "write",
          async (db) => {
            const moves = createStatusChangeCollector(reads.sums, db);
            const limits = createTransactionLimits(reads, writes, db);
            const result = await work(createTransaction(reads, writes, db, bundles, moves, limits));
            await moves.apply();
            await limits.apply();
            return result;
          },
          readFrom,
        ),
      ),
    leases: (ms) => lastingLeases(leases, outside, ms),
    lease: (name, holder, ms) => aside(async (db) => (await db.run(leases.take, { name, holder, ms })) === 1),
    release: (name, holder) => aside(async (db) => void (await db.run(leases.release, { name, holder }))),
    async upkeep(max) {
      const folded = await retryConflicts(() =>
        enqueue(() => access.transact("write", (db) => foldSums(reads.sums, db, max))),
      );
      try {
        return (await makeBundle()) ? max : folded;
      } catch (error) {
        // An altered entry can never be moved into a bundle. Continue with the sums anyway.
        if (folded === max) return folded;
        throw error;
      }
    },
    inspect: async () => [
      ...(await access.read(async () => (await engine.integrityFaults?.()) ?? [])),
      ...(await access.read(
        async () => (await engine.schemaFaults?.(listSchemaStatements(dialect, migrations))) ?? [],
      )),
      ...(await findBundleFaults(reads, outside)),
      ...(await findAgentNameFaults(reads.agentNames, outside)),
      ...(await findTotalFaults(reads, outside)),
    ],
    copying: createCopying(statements.copies, outside, bundles, (work) => enqueue(() => access.transact("copy", work))),
    ...optionalMethods(),
  };

  /** Returns the methods that only some databases support. */
  function optionalMethods(): Partial<Storage> {
    const { backup, compact, watch, processes, onConnection } = engine;
    return {
      ...(dialect.suspendAppendOnly === undefined
        ? {}
        : {
            cutBack: (keep) =>
              enqueue(() =>
                access.transact("write", (db) =>
                  cutBack(statements.cuts, reads, bundles, dialect, db, (rows) =>
                    keep(rows, createTransaction(reads, writes, db, bundles)),
                  ),
                ),
              ),
          }),
      ...(watch === undefined ? {} : { watch: watch.bind(engine) }),
      ...(backup === undefined
        ? {}
        : {
            async backup(path) {
              access.assertOpen();
              await orStorageError(engine, "copy the store", () => backup.call(engine, path));
            },
          }),
      ...(compact === undefined
        ? {}
        : {
            compact: () =>
              enqueue(async () => {
                access.assertOpen();
                if (access.state === "read only") throw new StorageError("readonly", READ_ONLY);
                await orStorageError(engine, "compact the store", () => compact.call(engine));
              }),
          }),
      ...(processes === undefined ? {} : { processes }),
      ...(onConnection === undefined ? {} : { onConnection: onConnection.bind(engine) }),
    };
  }
}
