/** Migrates a store's schema. Runs each migration in its own transaction, which also writes the row that records it. */
import { StorageError } from "../../src/storage/index.ts";
import type { SqlDialect } from "./dialect.ts";
import type { SqlEngine, SqlQuery, SqlTransaction } from "./engine.ts";
import type { Migration } from "./migrations.ts";

/** The last commit that can open stores made before 0.1.0. */
const LAST_UNRELEASED = "223ce56535ecf03210bb9fb856ac131024365560";
const READ_RECORDED = "select version, name from schema_migrations order by version";

/**
 * Returns the version of the store's newest migration; 0 for a database without a store. Throws `StorageError` for a
 * store that was made before 0.1.0.
 */
export async function readStoredVersion(
  query: SqlQuery,
  dialect: SqlDialect,
  migrations: readonly Migration[],
): Promise<number> {
  if ((await query(dialect.hasTable("schema_migrations"), [])).length === 0) return 0;
  const rows = await query(READ_RECORDED, []);
  const [first] = rows;
  const last = rows.at(-1);
  if (first === undefined || last === undefined) return 0;
  if (first["name"] !== migrations[0]?.name)
    throw new StorageError(
      "unavailable",
      `this store was made before 0.1.0 (schema ${String(last["version"])}), and no release opens it. The last commit that reads it is ${LAST_UNRELEASED}: check it out to read or export the store. To start this version, give it a new store: another data folder or an empty database`,
    );
  return Number(last["version"]);
}

/**
 * Runs the migrations that have not been applied to the store. Throws `StorageError` if a migration fails, or if the
 * store was written by a newer version or before 0.1.0.
 */
export async function migrate(engine: SqlEngine, dialect: SqlDialect, migrations: readonly Migration[]): Promise<void> {
  const newest = migrations.at(-1)?.version ?? 0;
  // Read the version again before each migration, because another process can have migrated the store since.
  while (await migrateOnce(engine, dialect, migrations, newest));
}

/** Runs one migration. Returns true if there might be more. */
async function migrateOnce(
  engine: SqlEngine,
  dialect: SqlDialect,
  migrations: readonly Migration[],
  newest: number,
): Promise<boolean> {
  // Read first, because most starts have no migrations to run and do not need a lock.
  if ((await readStoredVersion(engine.query, dialect, migrations)) === newest) return false;
  const tx = await engine.begin("migrate");
  let next: Migration | undefined;
  let stored: number | null = null;
  try {
    const applied = await readStoredVersion(
      async (text, values) => (await tx.query(text, values)).rows,
      dialect,
      migrations,
    );
    stored = applied;
    if (applied > newest) {
      throw new StorageError(
        "unavailable",
        `the store was written by a newer version (schema ${applied}, this one knows ${newest}); run that version, or restore a backup from before it`,
      );
    }
    next = migrations.find((migration) => migration.version > applied);
    if (next === undefined) {
      await tx.rollback(null);
      return false;
    }
    if (applied === 0) await tx.query(schemaTable(dialect), []);
    await apply(tx, dialect, next);
    await tx.commit(null);
    return true;
  } catch (error) {
    await tx.rollback(error);
    // Ignore the error if another process has run the migration.
    if (stored !== null && (await readStoredVersion(engine.query, dialect, migrations).catch(() => 0)) > stored)
      return true;
    if (next === undefined) throw error;
    const failure = engine.toStorageError(error, "migrate");
    throw new StorageError(
      failure.kind,
      `the store could not be brought to schema ${next.version} (${next.name}): ${failure.message}`,
      { cause: error },
    );
  }
}

/** Returns all statements that create a new store. */
export function listSchemaStatements(dialect: SqlDialect, migrations: readonly Migration[]): string[] {
  return [schemaTable(dialect), ...migrations.flatMap(({ statements }) => statements(dialect))];
}

async function apply(tx: SqlTransaction, dialect: SqlDialect, { name, version, statements }: Migration): Promise<void> {
  // Another process that runs the same migration waits here for this row. Its insert then fails because the version
  // exists, and `migrateOnce` finds the migration applied.
  await tx.query(
    `insert into schema_migrations (version, name, applied_at) values (${version}, '${name.replaceAll("'", "''")}', ${Date.now()})`,
    [],
  );
  for (const statement of statements(dialect)) await tx.query(statement, []);
}

function schemaTable({ types, tableOptions }: SqlDialect): string {
  return `create table "schema_migrations" ("version" integer primary key, "name" ${types.text} not null, "applied_at" ${types.integer} not null)${tableOptions(false)}`;
}
