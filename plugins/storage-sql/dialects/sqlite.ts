/** The schema's dialect for SQLite: STRICT tables, and triggers that hold against every program that opens the file. */
import { sql, SqliteAdapter, SqliteQueryCompiler, type Kysely } from "kysely";
import type { SqlDialect } from "../dialect.ts";
import { writerOf } from "../schema.ts";

export const db = writerOf(new SqliteAdapter(), new SqliteQueryCompiler());

/** "Asnt" in the file's header: another program's database is never migrated. */
export const APPLICATION_ID = 0x41736e74;

export const sqliteDialect: SqlDialect = {
  db: db as unknown as Kysely<never>,
  bytes: sql`blob`,
  integer: sql`integer`,
  text: sql`text`,
  now: sql<number>`cast((julianday('now') - 2440587.5) * 86400000 as integer)`,
  hasTable: (name) => `select 1 as there from sqlite_schema where type = 'table' and name = '${name}'`,
  hasColumn: (table, column) => `select 1 as there from pragma_table_info('${table}') where name = '${column}'`,
  beginnings: [`pragma application_id = ${APPLICATION_ID}`],
  bytesOf: (hex) => sql.raw(`x'${hex}'`),
  given: (json, columns) =>
    sql`(select ${sql.raw(
      Object.keys(columns)
        .map((name) => `value ->> '$.${name}' as "${name}"`)
        .join(", "),
    )} from json_each(${json})) as given`,
  finish: (table, clustered = false) => table.modifyEnd(clustered ? sql`strict, without rowid` : sql`strict`),
  appendOnly(table, key, onDuplicate) {
    const same = key.map((column) => `"${column}" = new."${column}"`).join(" and ");
    const answer =
      onDuplicate === "keep" ? "raise(ignore)" : `raise(abort, '${table} is append-only: this row is there already')`;
    return [
      `create trigger "${table}_no_update" before update on "${table}" begin select raise(abort, '${table} is append-only: a row cannot be changed'); end`,
      `create trigger "${table}_no_delete" before delete on "${table}" begin select raise(abort, '${table} is append-only: a row cannot be deleted'); end`,
      // INSERT OR REPLACE deletes without firing a delete trigger (https://sqlite.org/lang_conflict.html).
      `create trigger "${table}_no_replace" before insert on "${table}" when exists (select 1 from "${table}" where ${same}) begin select ${answer}; end`,
    ];
  },
  neverShrinks: (table, column) => [
    `create trigger "${table}_no_shrink" before update on "${table}" when new."${column}" < old."${column}" begin select raise(abort, '${table} cannot go back: ${column} only grows'); end`,
    `create trigger "${table}_no_delete" before delete on "${table}" begin select raise(abort, '${table} cannot be deleted'); end`,
    `create trigger "${table}_no_replace" before insert on "${table}" when exists (select 1 from "${table}") begin select raise(abort, '${table} has one row, which is updated'); end`,
  ],
};
