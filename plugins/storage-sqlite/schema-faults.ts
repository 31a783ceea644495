/** Reads the schema of a store for the audit: SQLite stores the text of every statement that created an object. */
import { type SchemaObject, schemaDifferences } from "../../src/storage/sql/index.ts";
import { connect, type Connection } from "./sqlite-connection.ts";
import type { SqliteLibrary } from "./load-library.ts";

/** Exclude the statistics tables of ANALYZE, the only tables that SQLite adds by itself. */
const OBJECTS = `select type || ' ' || name as name, tbl_name || ': ' || coalesce(sql, '') as definition
  from sqlite_schema where name not like 'sqlite\\_stat%' escape '\\'`;

const readSchema = (connection: Connection): SchemaObject[] =>
  connection.all(OBJECTS, []).map((row) => ({ name: String(row["name"]), definition: String(row["definition"]) }));

/** Returns how the store's schema differs from the one that these statements create in an empty database. */
export function findSchemaFaults(library: SqliteLibrary, store: Connection, statements: readonly string[]): string[] {
  const memory = connect(library, ":memory:", { busyTimeout: 0 });
  try {
    for (const statement of statements) memory.exec(statement);
    return schemaDifferences(readSchema(memory), readSchema(store));
  } finally {
    memory.close();
  }
}
