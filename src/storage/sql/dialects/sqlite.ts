/** The schema's dialect for SQLite: STRICT tables, and triggers that hold against every program that opens the file. */
import { sql, SqliteAdapter, SqliteQueryCompiler, type Kysely } from "kysely";
import type { SqlDialect } from "../dialect.ts";
import { OUT_OF_LINE } from "../dialect.ts";
import type { Form } from "../forms.ts";
import { writerOf } from "../schema.ts";

export const db = writerOf(new SqliteAdapter(), new SqliteQueryCompiler());

/** "Asnt" in the file's header: another program's database is never migrated. */
export const APPLICATION_ID = 0x41736e74;

/** Whether a text is exactly of the form. */
function isOf(form: Form, text: string): string {
  if (form === "hash") return `length(${text}) = 64 and ${text} not glob '*[^0-9a-f]*'`;
  const digits = (count: number): string => "[0-9a-f]".repeat(count);
  return `${text} glob '${[8, 4, 4, 4, 12].map(digits).join("-")}'`;
}

export const sqliteDialect: SqlDialect = {
  db: db as unknown as Kysely<never>,
  bytes: sql`blob`,
  integer: sql`integer`,
  text: sql`text`,
  now: sql<number>`cast((julianday('now') - 2440587.5) * 86400000 as integer)`,
  server: null,
  hasTable: (name) => `select 1 as there from sqlite_schema where type = 'table' and name = '${name}'`,
  hasColumn: (table, column) => `select 1 as there from pragma_table_info('${table}') where name = '${column}'`,
  beginnings: [`pragma application_id = ${APPLICATION_ID}`],
  // It is the row's number.
  indexesHoldKey: true,
  expectsRows: false,
  packed: {
    pack: (form, text) => `case when ${isOf(form, text)} then unhex(${text}, '-') else ${text} end`,
    check: (form, column) =>
      `case typeof("${column}") when 'blob' then length("${column}") = ${form === "uuid" ? 16 : 32} when 'text' then not (${isOf(form, `"${column}"`)}) else "${column}" is null end`,
  },
  unindexed: (column) => sql`+${sql.ref(column)}`,
  dropIndex: (name) => [`drop index if exists "${name}"`],
  bytesOf: (hex) => sql.raw(`x'${hex}'`),
  // One process at a time.
  noBytes: new Uint8Array(0),
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
  mayEmptyEntries: (columns, keeping, said = []) => [
    `drop trigger if exists "entries_no_update"`,
    `create trigger "entries_no_update" before update on "entries" when not (${[
      "length(new.bytes) = 0 and length(old.bytes) > 0",
      ...columns.map((column) => `new."${column}" is old."${column}"`),
      ...said.map(
        (column) => `(new."${column}" is old."${column}" or old.type = 'decision' and new."${column}" is null)`,
      ),
      `old.type not in (${keeping.map((type) => `'${type}'`).join(", ")})`,
      "exists (select 1 from entry_bundles where start = old.seq - old.seq % 256)",
      "exists (select 1 from ledger_head where size >= old.seq - old.seq % 256 + 256)",
    ].join(" and ")}) begin select raise(abort, 'entries is append-only: a row cannot be changed'); end`,
  ],
  bundlesInLine: () => [
    `create trigger "entry_bundles_in_line" before insert on "entry_bundles" when not (${[
      "length(new.bytes) > 0",
      "new.start = coalesce((select max(start) + 256 from entry_bundles), 0)",
      "exists (select 1 from ledger_head where size >= new.start + 256)",
    ].join(" and ")}) begin select raise(abort, 'entry_bundles is append-only: ${OUT_OF_LINE}'); end`,
  ],
  neverShrinks: (table, column) => [
    `create trigger "${table}_no_shrink" before update on "${table}" when new."${column}" < old."${column}" begin select raise(abort, '${table} cannot go back: ${column} only grows'); end`,
    `create trigger "${table}_no_delete" before delete on "${table}" begin select raise(abort, '${table} cannot be deleted'); end`,
    `create trigger "${table}_no_replace" before insert on "${table}" when exists (select 1 from "${table}") begin select raise(abort, '${table} has one row, which is updated'); end`,
  ],
};
