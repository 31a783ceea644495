/**
 * The storage contract over any SQL database. An engine provides connections and transactions. This folder has the
 * parts that are the same for all databases: the order of transactions, the schema, the statements and the handling of
 * failures.
 */
import {
  TILE_WIDTH,
  StorageError,
  type Storage,
  type StorageCopying,
  type StorageReader,
  type StorageTransaction,
} from "../../src/storage/index.ts";
import type { Kysely } from "kysely";
import { StoreAccess } from "./access.ts";
import { createBundleReader, UNBUNDLED_ENTRIES, type BundleReader } from "./bundles.ts";
import { retryConflicts } from "./conflicts.ts";
import { createStorageCopying, prepareStorageCopying } from "./copying.ts";
import { deleteUncoveredRows } from "./delete-uncovered-rows.ts";
import type { SqlDialect } from "./dialect.ts";
import type { SqlEngine } from "./engine.ts";
import { findHashIndexFaults, indexNextHashSpan, isHashSpanDue } from "./hash-index.ts";
import { readActiveLeases } from "./leases.ts";
import { createLimitAccess, findLimitTotalFaults } from "./limits.ts";
import { migrate, listSchemaStatements, readStoredVersion } from "./run-migrations.ts";
import { MIGRATIONS, type Migration } from "./migrations.ts";
import { findAgentFoldMismatches } from "./open-actions.ts";
import { createReader } from "./queries.ts";
import { addActionsToSums, createStatusChangeCollector } from "./sums.ts";
import type { SqlExecutor, SqlReader } from "./statement.ts";
import type { Tables } from "./table-schema.ts";
import { findBundleFaults, createBundler } from "./bundler.ts";
import { createTransaction } from "./writes.ts";

export interface SqlStorageOptions {
  /** The migrations. For tests of migrations. */
  migrations?: readonly Migration[];
  /** Number of the newest entries that keep their bytes in their rows. For tests. */
  unbundledEntries?: number;
}

/**
 * Creates a storage that uses an SQL database. `engine` runs statements, and `dialect` defines their SQL.
 * @example
 * const storage = createSqlStorage(libsqlEngine({ url: "file:assent.db" }), sqliteDialect);
 */
export function createSqlStorage(
  engine: SqlEngine,
  dialect: SqlDialect,
  { migrations = MIGRATIONS, unbundledEntries = UNBUNDLED_ENTRIES }: SqlStorageOptions = {},
): Storage {
  const store = new SqlStore(new StoreAccess(engine, dialect), migrations, unbundledEntries);
  return {
    ...store.reader,
    name: engine.name,
    exclusive: engine.exclusive,
    open: ({ readOnly = false } = {}) => store.open(readOnly),
    schema: () => store.schema(),
    close: () => store.close(),
    ping: () => store.ping(),
    write: (work, { readFrom } = {}) => store.write(work, readFrom),
    leases: (ms) => store.leases(ms),
    lease: (name, holder, ms) => store.lease(name, holder, ms),
    release: (name, holder) => store.release(name, holder),
    upkeep: (max) => store.upkeep(max),
    inspect: () => store.inspect(),
    copying: store.copying(),
    ...optionalMethods(store),
  };
}

/** Returns the optional methods that this database supports. */
function optionalMethods(store: SqlStore): Partial<Storage> {
  const { engine, dialect } = store.access;
  const { backup, compact, watch, processes, onConnection } = engine;
  return {
    ...(dialect.suspendAppendOnly === undefined
      ? {}
      : { deleteUncoveredRows: (keep) => store.deleteUncoveredRows(keep) }),
    ...(watch === undefined ? {} : { watch: watch.bind(engine) }),
    ...(backup === undefined
      ? {}
      : {
          async backup(path) {
            store.access.assertOpen();
            await store.access.orStorageError("copy the store", () => backup.call(engine, path));
          },
        }),
    ...(compact === undefined ? {} : { compact: () => store.compact(() => compact.call(engine)) }),
    ...(processes === undefined ? {} : { processes }),
    ...(onConnection === undefined ? {} : { onConnection: onConnection.bind(engine) }),
  };
}

class SqlStore {
  readonly access: StoreAccess;
  readonly reader: StorageReader;
  private readonly migrations: readonly Migration[];
  private readonly bundles: BundleReader;
  private readonly makeBundles: (most: number) => Promise<boolean>;
  /** The write that all waiting calls of `ping` share. */
  private pinging: Promise<void> | null = null;

  constructor(access: StoreAccess, migrations: readonly Migration[], unbundledEntries: number) {
    const { reads, writes } = access.statements;
    this.access = access;
    this.migrations = migrations;
    this.bundles = createBundleReader(reads);
    this.reader = createReader(reads, { ...access.outside, ...snapshotOf(access) }, this.bundles);
    this.makeBundles = createBundler({
      reads,
      writes,
      reader: access.outside,
      aside: (work) => access.aside(work),
      unbundledEntries,
    });
  }

  open(readOnly: boolean): Promise<void> {
    const { access } = this;
    return access.enqueue(async () => {
      if (access.state === "closed") await access.orStorageError("open the store", () => this.openEngine(readOnly));
    });
  }

  private async openEngine(readOnly: boolean): Promise<void> {
    const { access } = this;
    const { engine, dialect, statements } = access;
    await engine.open({ readOnly });
    try {
      if (readOnly) {
        if ((await this.readVersion()) === 0)
          throw new StorageError("unavailable", "there is no store in this database");
        access.state = "read only";
        return;
      }
      await migrate(engine, dialect, this.migrations);
      access.state = "open";
      // Write now, so that a database that cannot be written is detected at startup instead of the first decision.
      await access.transact("aside", async (db) => {
        await db.run(statements.countPing, {});
        await db.run(statements.leases.deleteStale, {});
      });
    } catch (error) {
      access.state = "closed";
      await engine.close();
      throw error;
    }
  }

  private readVersion(): Promise<number> {
    const { engine, dialect } = this.access;
    return readStoredVersion(engine.query, dialect, this.migrations);
  }

  async schema(): ReturnType<Storage["schema"]> {
    const applied = await this.access.read(() => this.readVersion());
    return { applied, known: this.migrations.at(-1)?.version ?? 0 };
  }

  close(): Promise<void> {
    const { access } = this;
    return access.enqueue(async () => {
      if (access.state === "closed") return;
      access.state = "closed";
      await access.engine.close();
    });
  }

  ping(): Promise<void> {
    const { access } = this;
    // Use one commit for all waiting calls, because unauthenticated callers can send any number of health checks.
    this.pinging ??= access
      .aside(async (db) => void (await db.run(access.statements.countPing, {})))
      .finally(() => {
        this.pinging = null;
      });
    return this.pinging;
  }

  write<T>(work: (tx: StorageTransaction) => Promise<T>, readFrom: number | undefined): Promise<T> {
    const { reads, writes } = this.access.statements;
    const run = async (db: SqlExecutor): Promise<T> => {
      const moves = createStatusChangeCollector(reads.sums, db);
      const limits = createLimitAccess(reads, writes, db);
      const result = await work(createTransaction(reads, writes, db, this.bundles, moves, limits));
      await moves.apply();
      await limits.apply();
      return result;
    };
    return this.access.enqueue(() => this.access.transact("write", run, readFrom));
  }

  leases(ms: number): ReturnType<Storage["leases"]> {
    return readActiveLeases(this.access.statements.leases, this.access.outside, ms);
  }

  lease(name: string, holder: string, ms: number): Promise<boolean> {
    const { acquire } = this.access.statements.leases;
    return this.access.aside(async (db) => (await db.run(acquire, { name, holder, ms })) === 1);
  }

  release(name: string, holder: string): Promise<void> {
    const { release } = this.access.statements.leases;
    return this.access.aside(async (db) => void (await db.run(release, { name, holder })));
  }

  async upkeep(max: number): Promise<number> {
    const { access } = this;
    const { sums } = access.statements.reads;
    const folded = await retryConflicts(() =>
      access.enqueue(() => access.transact("write", (db) => addActionsToSums(sums, db, max))),
    );
    const { reads, writes } = access.statements;
    if (await isHashSpanDue(reads, access.outside)) {
      await retryConflicts(() =>
        access.enqueue(() => access.transact("write", (db) => indexNextHashSpan(reads, writes, db))),
      );
      if (await isHashSpanDue(reads, access.outside)) return max;
    }
    try {
      return (await this.makeBundles(Math.max(1, Math.floor(max / TILE_WIDTH)))) ? max : folded;
    } catch (error) {
      // If more actions must be added to the sums, ignore the error: an altered entry can never be moved to a bundle,
      // and must not stop the sums.
      if (folded === max) return folded;
      throw error;
    }
  }

  async inspect(): Promise<string[]> {
    const { engine, dialect, outside, statements } = this.access;
    const { reads } = statements;
    const schema = listSchemaStatements(dialect, this.migrations);
    return [
      ...(await this.access.read(async () => (await engine.integrityFaults?.()) ?? [])),
      ...(await this.access.read(async () => (await engine.schemaFaults?.(schema)) ?? [])),
      ...(await findBundleFaults(reads, outside)),
      ...(await findAgentFoldMismatches(reads.agentNames, outside)),
      ...(await findLimitTotalFaults(reads, outside)),
      ...(await findHashIndexFaults(reads, outside)),
    ];
  }

  /** @param work a function that compacts the database */
  compact(work: () => Promise<void>): Promise<void> {
    const { access } = this;
    return access.enqueue(async () => {
      access.assertWritable();
      await access.orStorageError("compact the store", work);
    });
  }

  copying(): StorageCopying {
    const { access } = this;
    const statements = prepareStorageCopying(access.dialect.db as unknown as Kysely<Tables>);
    return createStorageCopying(statements, access.outside, this.bundles, (work) =>
      access.enqueue(() => access.transact("copy", work)),
    );
  }

  deleteUncoveredRows(
    keep: Parameters<NonNullable<Storage["deleteUncoveredRows"]>>[0],
  ): ReturnType<NonNullable<Storage["deleteUncoveredRows"]>> {
    const { access, bundles } = this;
    const { uncoveredRows, reads, writes } = access.statements;
    return access.enqueue(() =>
      access.transact("write", (db) =>
        deleteUncoveredRows(uncoveredRows, reads, bundles, access.dialect, db, (rows) =>
          keep(rows, createTransaction(reads, writes, db, bundles)),
        ),
      ),
    );
  }
}

/** Returns the method that runs reads on a single snapshot, or `{}` if the engine does not support snapshots. */
function snapshotOf(access: StoreAccess): { snapshot?<T>(work: (db: SqlReader) => Promise<T>): Promise<T> } {
  const { engine } = access;
  const snapshot = engine.snapshot?.bind(engine);
  if (snapshot === undefined) return {};
  return { snapshot: (work) => access.read(() => snapshot((query) => work(access.readerOver(query)))) };
}
