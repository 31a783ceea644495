/** The schema's dialect for Postgres: 64-bit integers, text in byte order, triggers that hold against every client. */
import { PostgresAdapter, PostgresQueryCompiler, sql, type Kysely } from "kysely";
import type { SqlKit } from "../storage-sql/migrations.ts";
import { writerOf } from "../storage-sql/schema.ts";

export const db = writerOf(new PostgresAdapter(), new PostgresQueryCompiler());

const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`;

/** A function that refuses, and the trigger that calls it. */
function refusal(table: string, name: string, when: string, message: string, condition = ""): string[] {
  const full = `${table}_${name}`;
  return [
    `create function "${full}"() returns trigger language plpgsql as $$ begin raise exception using errcode = 'integrity_constraint_violation', message = ${quoted(message)}; end $$`,
    `create trigger "${full}" ${when} on "${table}" ${when.includes("truncate") ? "for each statement" : "for each row"} ${condition} execute function "${full}"()`,
  ];
}

export const kit: SqlKit = {
  db: db as unknown as Kysely<never>,
  bytes: sql`bytea`,
  integer: sql`bigint`,
  text: sql`text collate "C"`,
  bytesOf: (hex) => sql.raw(`'\\x${hex}'::bytea`),
  finish: (table) => table,
  // A second row of the same key is refused by the key itself, or left out by the statement that inserts.
  appendOnly: (table) => [
    ...refusal(table, "no_update", "before update", `${table} is append-only: a row cannot be changed`),
    ...refusal(table, "no_delete", "before delete", `${table} is append-only: a row cannot be deleted`),
    ...refusal(table, "no_truncate", "before truncate", `${table} is append-only: it cannot be emptied`),
  ],
  neverShrinks: (table, column) => [
    ...refusal(table, "no_shrink", "before update", `${table} cannot go back: ${column} only grows`, `when (new."${column}" < old."${column}")`),
    ...refusal(table, "no_delete", "before delete", `${table} cannot be deleted`),
    ...refusal(table, "no_truncate", "before truncate", `${table} cannot be emptied`),
  ],
};
