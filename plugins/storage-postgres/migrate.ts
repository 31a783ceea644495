/** Brings the schema up to date, in one process at a time however many start together. Each step is a transaction of its own. */
import { Kysely, sql, type Transaction } from "kysely";
import { PostgresJSDialect } from "kysely-postgres-js";
import { StorageError } from "../../src/contract/storage.ts";
import type { Migration } from "../storage-sql/migrations.ts";
import type { Client } from "./client.ts";
import { toStorageError } from "./errors.ts";
import { kit } from "./kit.ts";

/** "Asnt": the key of the advisory lock, which lives as long as the transaction that took it. */
const LOCK = 0x41736e74;

interface Schema {
  schema_migrations: { version: number; name: string; applied_at: number };
}

/** Rejects with StorageError for a schema of a newer version. */
export async function migrate(client: Client, migrations: readonly Migration[]): Promise<void> {
  // The dialect ends the client with it; the client is the storage's to end.
  const db = new Kysely<Schema>({ dialect: new PostgresJSDialect({ postgres: client as never }) });
  const known = migrations.at(-1)?.version ?? 0;
  for (;;) {
    const done = await db.transaction().execute(async (tx) => {
      await sql`select pg_advisory_xact_lock(${sql.lit(LOCK)})`.execute(tx);
      await sql`create table if not exists schema_migrations (version integer primary key, name text not null, applied_at bigint not null)`.execute(tx);
      const { rows } = await sql<{ version: number }>`select coalesce(max(version), 0)::integer as version from schema_migrations`.execute(tx);
      const stored = Number(rows[0]?.version ?? 0);
      if (stored > known) {
        throw new StorageError("unavailable", `the database was written by a newer version (schema ${stored}, this one knows ${known}); run that version, or restore a backup from before it`);
      }
      const next = migrations.find(({ version }) => version === stored + 1);
      if (next === undefined) return true;
      await step(tx, next);
      return false;
    });
    if (done) return;
  }
}

/** 0 for a database without a store. */
export async function storedVersion(client: Client): Promise<number> {
  const [there] = await client.unsafe("select to_regclass('schema_migrations') is not null as there");
  if (there?.["there"] !== true) return 0;
  const [row] = await client.unsafe("select coalesce(max(version), 0)::integer as version from schema_migrations");
  return Number(row?.["version"]);
}

async function step(tx: Transaction<Schema>, { version, name, statements }: Migration): Promise<void> {
  try {
    for (const statement of statements(kit)) await sql.raw(statement).execute(tx);
    await tx.insertInto("schema_migrations").values({ version, name, applied_at: Date.now() }).execute();
  } catch (error) {
    const failure = toStorageError(error, `bring the database to schema ${version} (${name})`);
    throw new StorageError(failure.kind, failure.message, { cause: error });
  }
}
