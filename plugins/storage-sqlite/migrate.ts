/** Brings a store's schema up to date. Runs under the store's lock, each step in its own transaction. */
import { StorageError } from "../../src/contract/storage.ts";
import type { Migration } from "../storage-sql/migrations.ts";
import type { Connection } from "./connection.ts";
import { kit } from "./kit.ts";

/** "Asnt" in the file's header: another program's database is never migrated. */
const APPLICATION_ID = 0x41736e74;

/** Throws StorageError for a store of a newer version and for a database that is not a store. */
export function migrate(connection: Connection, path: string, migrations: readonly Migration[]): void {
  const known = migrations.at(-1)?.version ?? 0;
  const stored = storedVersion(connection, path);
  if (stored > known) {
    throw new StorageError("unavailable", `the store ${path} was written by a newer version (schema ${stored}, this one knows ${known}); run that version, or restore a backup from before it`);
  }
  for (const migration of migrations.slice(stored)) step(connection, path, migration);
}

/** 0 for an empty file. Throws StorageError for a database that is not a store. */
export function storedVersion(connection: Connection, path: string): number {
  const tables = connection.query("select name from sqlite_schema where type = 'table'").map((row) => row["name"]);
  if (tables.length === 0) return 0;
  const id = connection.query("pragma application_id")[0]?.["application_id"];
  if (id !== APPLICATION_ID || !tables.includes("schema_migrations")) {
    throw new StorageError("corrupt", `${path} is a database of another program; give the store a file of its own`);
  }
  return Number(connection.query("select coalesce(max(version), 0) as version from schema_migrations")[0]?.["version"]);
}

function step(connection: Connection, path: string, { version, name, statements }: Migration): void {
  connection.exec("begin immediate");
  try {
    if (version === 1) {
      connection.exec(`pragma application_id = ${APPLICATION_ID}`);
      connection.exec("create table schema_migrations (version integer primary key, name text not null, applied_at integer not null) strict");
    }
    for (const statement of statements(kit)) connection.exec(statement);
    connection.exec(`insert into schema_migrations (version, name, applied_at) values (${version}, '${name.replaceAll("'", "''")}', ${Date.now()})`);
    connection.exec("commit");
  } catch (error) {
    try {
      connection.exec("rollback");
    } catch {
      // Rolled back by SQLite itself.
    }
    const failure = error as StorageError;
    throw new StorageError(failure.kind, `the store ${path} could not be brought to schema ${version} (${name}): ${failure.message}`, { cause: failure });
  }
}
