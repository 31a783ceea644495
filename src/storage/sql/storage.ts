/**
 * The storage contract over any SQL database: what an engine brings is a connection and a transaction; the order of
 * transactions, the schema, the statements and what a failure means are the same for all and stand here.
 */
import { sql, type Kysely } from "kysely";
import { StorageError, type Storage, type StorageTransaction } from "../../contract/storage.ts";
import { createBundles, KEPT } from "./bundles.ts";
import { despiteConflicts } from "./conflicts.ts";
import { createCopying, prepareCopying } from "./copying.ts";
import { cutBack, prepareCut } from "./cut-back.ts";
import type { SqlDialect } from "./dialect.ts";
import type { SqlEngine, SqlPurpose, SqlQuery } from "./engine.ts";
import { createKinds, prepareKinds } from "./kinds.ts";
import { lastingLeases, prepareLeases } from "./leases.ts";
import { knownRows, lockReads, prepareLockReads } from "./lock-reads.ts";
import { migrate, storedVersion } from "./migrate.ts";
import { MIGRATIONS, type Migration } from "./migrations.ts";
import { replacedIndexes } from "./migrations/short-indexes.ts";
import { misshapenRows, prepareMisshapen } from "./misshapen.ts";
import { createReader, prepareReads } from "./queries.ts";
import type { Tables } from "./schema.ts";
import { transactionScope } from "./scope.ts";
import { foldSums, statusMoves } from "./sums.ts";
import { bind, prepare, type SqlExecutor } from "./statement.ts";
import { createPacking, inspect, type Superseded } from "./upkeep.ts";
import { createTransaction, prepareWrites } from "./writes.ts";

export interface SqlStorageOptions {
  /** For tests of migrations. */
  migrations?: readonly Migration[];
  /** For tests: how many of the newest entries keep their own bytes. */
  keep?: number;
}

/** The schema from which on columns of actions are packed. */
const PACKED_SINCE = 27;
/** The schema from which on entries are found by their hash without an index. */
const RUNS_SINCE = 23;

const prepared = new WeakMap<object, Map<boolean, ReturnType<typeof prepareAll>>>();

/** Written once for each dialect and way to hold texts. */
function statementsOf(db: Kysely<Tables>, dialect: SqlDialect): ReturnType<typeof prepareAll> {
  const forms = prepared.get(db) ?? new Map<boolean, ReturnType<typeof prepareAll>>();
  prepared.set(db, forms);
  const isPacked = dialect.packed !== null;
  const statements = forms.get(isPacked) ?? prepareAll(db, dialect);
  forms.set(isPacked, statements);
  return statements;
}

function prepareAll(db: Kysely<Tables>, dialect: SqlDialect) {
  return {
    reads: prepareReads(db, dialect),
    writes: prepareWrites(db, dialect),
    copies: prepareCopying(db, dialect),
    cuts: prepareCut(db, dialect),
    kinds: prepareKinds(db),
    misshapen: prepareMisshapen(db, dialect.packed),
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

export function createSqlStorage(engine: SqlEngine, given: SqlDialect, options: SqlStorageOptions = {}): Storage {
  const migrations = options.migrations ?? MIGRATIONS;
  const newest = migrations.at(-1)?.version ?? 0;
  const dialect = engine.exclusive && newest >= PACKED_SINCE ? given : { ...given, packed: null };
  const db = dialect.db as unknown as Kysely<Tables>;
  const statements = statementsOf(db, dialect);
  const kinds = dialect.packed === null ? null : createKinds(statements.kinds);
  const { reads, writes, leases } = statements;
  const leafIndex: Superseded = { schema: RUNS_SINCE, drops: [dialect.dropIndex("entries_by_leaf_hash")] };
  let state: "closed" | "open" | "read only" = "closed";
  /** The last of what must run one after another: opening, writes, closing. */
  let queue: Promise<unknown> = Promise.resolve();
  let pinging: Promise<void> | null = null;

  function enqueue<T>(job: () => Promise<T>): Promise<T> {
    const result = queue.then(job);
    queue = result.catch(() => undefined);
    return result;
  }

  function assertOpen(): void {
    if (state === "closed") throw new StorageError("unavailable", `the store of ${engine.name} is not open`);
  }

  /** What the engine says, as the contract says it. */
  async function orStorageError<T>(doing: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw engine.toStorageError(error, doing);
    }
  }

  async function run<T>(
    purpose: SqlPurpose,
    work: (db: SqlExecutor) => Promise<T>,
    readFrom: number | null = null,
  ): Promise<T> {
    let committed = false;
    try {
      const result = await transact(purpose, work, readFrom);
      committed = true;
      return result;
    } finally {
      kinds?.settle(committed);
    }
  }

  async function transact<T>(
    purpose: SqlPurpose,
    work: (db: SqlExecutor) => Promise<T>,
    readFrom: number | null,
  ): Promise<T> {
    assertOpen();
    if (state === "read only") throw new StorageError("readonly", "the store was opened to be read only");
    const tx = await orStorageError("write to the store", () =>
      engine.begin(purpose, readFrom === null ? [] : lockReads(statements.lockReads, readFrom)),
    );
    const scope = transactionScope(engine, dialect, tx, writes, knownRows(tx, reads, readFrom));
    let result: T;
    try {
      result = await work(scope.executor);
    } catch (thrown) {
      const failure = scope.abandon();
      await scope.answered().catch(() => undefined);
      await tx.rollback(failure ?? thrown);
      // Whatever else went wrong: nothing was committed, and the caller knows its own error.
      throw thrown;
    }
    let failure: Error;
    try {
      const lost = scope.end();
      if (lost !== null) throw lost;
      if (engine.pipelined !== true) await scope.answered();
      // What was sent before has its answers before the commit has its own.
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
  }

  /** A read outside of transactions. */
  function look<T>(work: () => Promise<T>): Promise<T> {
    return despiteConflicts(() => {
      assertOpen();
      return orStorageError("read from the store", work);
    });
  }

  /** A transaction that moves no head. The others do not wait while it waits for another turn. */
  const aside = <T>(work: (db: SqlExecutor) => Promise<T>): Promise<T> =>
    despiteConflicts(() => enqueue(() => run("aside", work)));

  const readerOver = (query: SqlQuery): Pick<SqlExecutor, "all"> => ({
    all: (statement, values) => query(statement.sql, bind(statement, values, dialect.packed !== null)),
  });
  const outside = readerOver((text, values) => engine.query(text, values));
  const looks: Pick<SqlExecutor, "all"> = { all: (statement, values) => look(() => outside.all(statement, values)) };
  const bundles = createBundles(reads);
  const view = {
    ...looks,
    ...(engine.snapshot === undefined
      ? {}
      : {
          snapshot: <T>(work: (db: Pick<SqlExecutor, "all">) => Promise<T>): Promise<T> =>
            look(() => (engine.snapshot as NonNullable<SqlEngine["snapshot"]>)((query) => work(readerOver(query)))),
        }),
  };
  const reader = createReader(reads, view, bundles);
  const putOff = { statements, reader: looks, leafHashes: reader.leafHashes };
  const packing = createPacking({
    ...putOff,
    aside,
    exclusive: engine.exclusive,
    schema: newest,
    keep: options.keep ?? KEPT,
    noBytes: dialect.noBytes,
    steps: async () =>
      (await look(() => engine.query("select version, applied_at from schema_migrations", []))) as unknown as {
        version: number;
        applied_at: number;
      }[],
    leafIndex,
    listIndexes: { schema: 25, drops: engine.exclusive ? [] : replacedIndexes(dialect).map(dialect.dropIndex) },
  });

  async function open(readOnly: boolean): Promise<void> {
    kinds?.forget();
    await engine.open({ readOnly });
    try {
      if (readOnly) {
        if ((await storedVersion(engine.query, dialect)) === 0)
          throw new StorageError("unavailable", "there is no store in this database");
        state = "read only";
        return;
      }
      // While entries keep coming what drops it waits, and each of them would pay for it. Others that share the store: see upkeep.ts.
      const isUnwanted = engine.exclusive && newest >= RUNS_SINCE;
      await migrate(engine, dialect, migrations, isUnwanted ? leafIndex.drops.flat() : []);
      state = "open";
      // A database that may not be written says so now, and not at the first decision.
      await run("aside", async (db) => {
        await db.run(statements.countPing, {});
        if (newest >= 4) await db.run(leases.forget, {});
      });
    } catch (error) {
      state = "closed";
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
        if (state === "closed") await orStorageError("open the store", () => open(readOnly));
      }),
    async schema() {
      return { applied: await look(() => storedVersion(engine.query, dialect)), known: newest };
    },
    close: () =>
      enqueue(async () => {
        if (state === "closed") return;
        state = "closed";
        await engine.close();
      }),
    ping() {
      // Probes come from anybody; however many, one commit answers them.
      pinging ??= aside(async (db) => void (await db.run(statements.countPing, {}))).finally(() => {
        pinging = null;
      });
      return pinging;
    },
    write: <T>(work: (tx: StorageTransaction) => Promise<T>, { readFrom }: { readFrom?: number } = {}) =>
      enqueue(() =>
        run(
          "write",
          async (db) => {
            const moves = statusMoves(reads.sums, db);
            const result = await work(createTransaction(reads, writes, db, bundles, kinds, moves));
            await moves.apply();
            return result;
          },
          readFrom,
        ),
      ),
    leases: (ms) => lastingLeases(leases, looks, ms),
    lease: (name, holder, ms) => aside(async (db) => (await db.run(leases.take, { name, holder, ms })) === 1),
    release: (name, holder) => aside(async (db) => void (await db.run(leases.release, { name, holder }))),
    async upkeep(max) {
      const folded = await despiteConflicts(() => enqueue(() => run("write", (db) => foldSums(reads.sums, db, max))));
      try {
        return (await packing.next()) ? max : folded;
      } catch (error) {
        // An entry that was altered stays where it is for good; the sums do not wait for it.
        if (folded === max) return folded;
        throw error;
      }
    },
    async inspect() {
      const faults = await look(async () => (await engine.integrityFaults?.()) ?? []);
      try {
        faults.push(...(await inspect(putOff)), ...(await misshapenRows(statements.misshapen, looks)));
      } catch (error) {
        if (!(error instanceof StorageError && error.kind === "corrupt")) throw error;
        faults.push(`what the store keeps beside its tables cannot be read: ${error.message}`);
      }
      return faults;
    },
    ...(dialect.suspendAppendOnly === undefined
      ? {}
      : {
          cutBack: (keep: Parameters<NonNullable<Storage["cutBack"]>>[0]) =>
            enqueue(() =>
              run("write", (db) =>
                cutBack(statements.cuts, reads, bundles, dialect, db, (rows) =>
                  keep(rows, createTransaction(reads, writes, db, bundles, kinds)),
                ),
              ),
            ),
        }),
    copying: createCopying(statements.copies, looks, bundles, kinds, (work) => enqueue(() => run("copy", work))),
    ...(engine.watch === undefined ? {} : { watch: engine.watch.bind(engine) }),
    ...(engine.backup === undefined
      ? {}
      : {
          async backup(path: string) {
            assertOpen();
            await orStorageError("copy the store", () => (engine.backup as (path: string) => Promise<void>)(path));
          },
        }),
    ...(engine.processes === undefined ? {} : { processes: engine.processes }),
    ...(engine.onConnection === undefined ? {} : { onConnection: engine.onConnection.bind(engine) }),
  };
}
