/** Reads the schema of a store for the audit. SQLite stores the text of every statement that created an object. */
import { type SchemaObject, compareSchemas } from "../storage-sql/api.ts";
import { connect, type Connection } from "./sqlite-connection.ts";
import type { SqliteLibrary } from "./load-library.ts";

/** Excludes the statistics tables of ANALYZE, which are the only tables that SQLite adds to this schema on its own. */
const OBJECTS = `select type || ' ' || name as name, tbl_name || ': ' || coalesce(sql, '') as definition
  from sqlite_schema where name not like 'sqlite\\_stat%' escape '\\'`;

const readSchema = (connection: Connection): SchemaObject[] =>
  connection.all(OBJECTS, []).map((row) => ({ name: String(row["name"]), definition: String(row["definition"]) }));

/**
 * Returns the differences between the store's schema and the schema that these statements create in an empty database.
 */
export function findSchemaFaults(library: SqliteLibrary, store: Connection, statements: readonly string[]): string[] {
  const memory = connect(library, ":memory:", { busyTimeout: 0 });
  try {
    for (const statement of statements) memory.exec(statement);
    return compareSchemas(readSchema(memory), readSchema(store));
  } finally {
    memory.close();
  }
}
