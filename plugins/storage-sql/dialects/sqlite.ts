/** The schema's dialect for SQLite: STRICT tables, and triggers that apply to every program that opens the file. */
import { sql, SqliteAdapter, SqliteQueryCompiler, type Kysely } from "kysely";
import type { SqlDialect } from "../dialect.ts";
import { COLUMNS_UNCHANGED_BY_BUNDLING, INVALID_BUNDLE_MESSAGE } from "../dialect.ts";
import type { PackedForm } from "../packed-columns.ts";
import { createSqlBuilder } from "../table-schema.ts";

export const sqliteSqlBuilder = createSqlBuilder(new SqliteAdapter(), new SqliteQueryCompiler());

/** Returns an SQL condition that is true if the string is a lowercase hash or UUID, depending on `form`. */
function isOf(form: PackedForm, text: string): string {
  if (form === "hash") return `length(${text}) = 64 and ${text} not glob '*[^0-9a-f]*'`;
  const digits = (count: number): string => "[0-9a-f]".repeat(count);
  return `${text} glob '${[8, 4, 4, 4, 12].map(digits).join("-")}'`;
}

function appendOnly(table: string, key: readonly string[], onDuplicate: "refuse" | "keep"): string[] {
  const same = key.map((column) => `"${column}" = new."${column}"`).join(" and ");
  const answer =
    onDuplicate === "keep" ? "raise(ignore)" : `raise(abort, '${table} is append-only: this row already exists')`;
  return [
    `create trigger "${table}_no_update" before update on "${table}" begin select raise(abort, '${table} is append-only: a row cannot be changed'); end`,
    `create trigger "${table}_no_delete" before delete on "${table}" begin select raise(abort, '${table} is append-only: a row cannot be deleted'); end`,
    // INSERT OR REPLACE deletes rows without firing a delete trigger (https://sqlite.org/lang_conflict.html).
    `create trigger "${table}_no_replace" before insert on "${table}" when exists (select 1 from "${table}" where ${same}) begin select ${answer}; end`,
  ];
}

const oneRow = (table: string, column: string): string[] => [
  `create trigger "${table}_no_shrink" before update on "${table}" when new."${column}" < old."${column}" begin select raise(abort, '${table} cannot go back: ${column} only grows'); end`,
  `create trigger "${table}_no_delete" before delete on "${table}" begin select raise(abort, '${table} cannot be deleted'); end`,
  `create trigger "${table}_no_replace" before insert on "${table}" when exists (select 1 from "${table}") begin select raise(abort, '${table} has one row, which is updated'); end`,
];

export const sqliteDialect: SqlDialect = {
  db: sqliteSqlBuilder as unknown as Kysely<never>,
  types: {
    bytes: "blob",
    integer: "integer",
    text: "text",
    bytesLiteral: (hex) => `x'${hex}'`,
    packed: {
      type: "any",
      pack: (form, text) => `case when ${isOf(form, text)} then unhex(${text}, '-') else ${text} end`,
      check: (form, column) =>
        `case typeof("${column}") when 'blob' then length("${column}") = ${form === "uuid" ? 16 : 32} when 'text' then not (${isOf(form, `"${column}"`)}) else "${column}" is null end`,
    },
  },
  now: sql<number>`cast((julianday('now') - 2440587.5) * 86400000 as integer)`,
  server: null,
  usesGenericPlans: false,
  ignoreCaseLike: "like",
  hasTable: (name) => `select 1 as there from sqlite_schema where type = 'table' and name = '${name}'`,
  given: (json, columns) =>
    sql`(select ${sql.raw(
      Object.keys(columns)
        .map((name) => `value ->> '$.${name}' as "${name}"`)
        .join(", "),
    )} from json_each(${json})) as given`,
  tableOptions: (clustered) => (clustered ? " strict, without rowid" : " strict"),
  protect: (table, rule) =>
    rule.kind === "append-only" ? appendOnly(table, rule.key, rule.onDuplicate) : oneRow(table, rule.column),
  finishSchema: () => [
    `drop trigger "entries_no_update"`,
    `create trigger "entries_no_update" before update on "entries" when not (${[
      "length(new.bytes) = 0 and length(old.bytes) > 0",
      ...COLUMNS_UNCHANGED_BY_BUNDLING.map((column) => `new."${column}" is old."${column}"`),
      "old.followed = 0",
      "exists (select 1 from entry_bundles where start = old.seq - old.seq % 256)",
      "exists (select 1 from ledger_head where size >= old.seq - old.seq % 256 + 256)",
    ].join(" and ")}) begin select raise(abort, 'entries is append-only: a row cannot be changed'); end`,
    `create trigger "entry_bundles_in_line" before insert on "entry_bundles" when not (${[
      "length(new.bytes) > 0",
      "new.start = coalesce((select max(start) + 256 from entry_bundles), 0)",
      "exists (select 1 from ledger_head where size >= new.start + 256)",
    ].join(" and ")}) begin select raise(abort, 'entry_bundles is append-only: ${INVALID_BUNDLE_MESSAGE}'); end`,
  ],
};
