/**
 * Brings a store's schema up to date, each step in a transaction of its own together with the row that records it. A new
 * store is made in one: it has no rows that a step could take long over.
 */
import { sql } from "kysely";
import { StorageError } from "../../contract/storage.ts";
import type { SchemaKit, SqlDialect } from "./dialect.ts";
import type { SqlEngine, SqlQuery, SqlTransaction } from "./engine.ts";
import type { Migration } from "./migrations.ts";

const VERSION = "select coalesce(max(version), 0) as version from schema_migrations";

/** 0 for a database without a store. */
export async function storedVersion(query: SqlQuery, dialect: SqlDialect): Promise<number> {
  if ((await query(dialect.hasTable("schema_migrations"), [])).length === 0) return 0;
  return Number((await query(VERSION, []))[0]?.["version"]);
}

/**
 * Rejects with StorageError for a schema of a newer version.
 *
 * @param unwanted statements that take out of a new store what steps made and the newest has no use for
 */
export async function migrate(
  engine: SqlEngine,
  dialect: SqlDialect,
  migrations: readonly Migration[],
  unwanted: readonly string[] = [],
): Promise<void> {
  const newest = migrations.at(-1)?.version ?? 0;
  // Looked at again before each step: another process may have made it meanwhile.
  while (await step(engine, dialect, migrations, newest, unwanted));
}

async function step(
  engine: SqlEngine,
  dialect: SqlDialect,
  migrations: readonly Migration[],
  newest: number,
  unwanted: readonly string[],
): Promise<boolean> {
  // Most starts have nothing to do, and wait for nobody.
  if ((await storedVersion(engine.query, dialect)) === newest) return false;
  const tx = await engine.begin("migrate");
  let name = "";
  let version = 0;
  let stored: number | null = null;
  try {
    const applied = await storedVersion(async (text, values) => (await tx.query(text, values)).rows, dialect);
    stored = applied;
    if (applied > newest) {
      throw new StorageError(
        "unavailable",
        `the store was written by a newer version (schema ${applied}, this one knows ${newest}); run that version, or restore a backup from before it`,
      );
    }
    const due = migrations.filter((migration) => migration.version > applied);
    if (due.length === 0) {
      await tx.rollback(null);
      return false;
    }
    if (applied === 0)
      for (const text of [...(dialect.beginnings ?? []), schemaTable(dialect)]) await tx.query(text, []);
    for (const migration of applied === 0 ? due : due.slice(0, 1)) {
      ({ name, version } = migration);
      await apply(tx, { ...dialect, shared: !engine.exclusive }, migration);
    }
    if (applied === 0) for (const text of unwanted) await tx.query(text, []);
    await tx.commit(null);
    return true;
  } catch (error) {
    await tx.rollback(error);
    // Another process was faster.
    if (stored !== null && (await storedVersion(engine.query, dialect).catch(() => 0)) > stored) return true;
    if (name === "") throw error;
    const failure = engine.toStorageError(error, "migrate");
    throw new StorageError(
      failure.kind,
      `the store could not be brought to schema ${version} (${name}): ${failure.message}`,
      { cause: error },
    );
  }
}

async function apply(tx: SqlTransaction, kit: SchemaKit, migration: Migration): Promise<void> {
  const { name, version, unlessColumn } = migration;
  // First of all: another process that makes the same step waits here, and then finds that it was made.
  await tx.query(
    `insert into schema_migrations (version, name, applied_at) values (${version}, '${name.replaceAll("'", "''")}', ${Date.now()})`,
    [],
  );
  const isDone = unlessColumn !== undefined && (await tx.query(kit.hasColumn(...unlessColumn), [])).rows.length > 0;
  if (!isDone) for (const statement of migration.statements(kit)) await tx.query(statement, []);
}

function schemaTable({ db, integer, text, finish }: SqlDialect): string {
  return finish(
    db.schema
      .createTable("schema_migrations")
      .addColumn("version", sql`integer` as never, (column) => column.primaryKey())
      .addColumn("name", text as never, (column) => column.notNull())
      .addColumn("applied_at", integer as never, (column) => column.notNull()) as never,
  ).compile().sql;
}
