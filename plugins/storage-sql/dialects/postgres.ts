/** The schema's dialect for Postgres: 64-bit integers, text in byte order, and triggers that apply to every client. */
import {
  PostgresAdapter,
  PostgresQueryCompiler,
  sql,
  type AggregateFunctionNode,
  type FunctionNode,
  type Kysely,
} from "kysely";
import { SETTLED_INCARNATION_KEY } from "../../../src/storage/index.ts";
import type { SqlDialect } from "../dialect.ts";
import { COLUMNS_UNCHANGED_BY_BUNDLING, INVALID_BUNDLE_MESSAGE } from "../dialect.ts";
import { createSqlBuilder } from "../table-schema.ts";

/** Qualifies functions, so that no other user of the database can create one that fits a call better. */
class QualifyingCompiler extends PostgresQueryCompiler {
  protected override visitAggregateFunction(node: AggregateFunctionNode): void {
    this.append("pg_catalog.");
    super.visitAggregateFunction(node);
  }

  protected override visitFunction(node: FunctionNode): void {
    // `coalesce` is syntax.
    if (node.func !== "coalesce") this.append("pg_catalog.");
    super.visitFunction(node);
  }
}

export const postgresSqlBuilder = createSqlBuilder(new PostgresAdapter(), new QualifyingCompiler());

const quoteLiteral = (text: string): string => `'${text.replaceAll("'", "''")}'`;

/** Returns the definition of a trigger function that raises an error. */
function raisingFunction(name: string, code: string, message: string): string {
  return `create function "${name}"() returns trigger language plpgsql as $$ begin raise exception using errcode = ${quoteLiteral(code)}, message = ${quoteLiteral(message)}; end $$`;
}

/** Returns the definitions of a function that raises an error and of the trigger that calls it. */
function refusal(table: string, name: string, when: string, message: string, condition = ""): string[] {
  const full = `${table}_${name}`;
  return [
    raisingFunction(full, "integrity_constraint_violation", message),
    `create trigger "${full}" ${when} on "${table}" ${when.includes("truncate") ? "for each statement" : "for each row"} ${condition} execute function "${full}"()`,
  ];
}

const hexOf = (bytes: Uint8Array): string =>
  `\\x${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("hex")}`;

function guardOf(table: string, each: "statement" | "row"): string {
  return `create trigger "${table}_in_transaction" before insert or update or delete on "${table}" for each ${each} when (coalesce(pg_catalog.current_setting('assent.transaction', true), '') = '') execute function assent_no_transaction()`;
}

/**
 * Returns the statements of `SqlDialect.finishSchema` that create the triggers for bundles. These triggers let a
 * transaction empty the bytes of bundled entries, and reject a bundle that does not continue the previous one. The
 * trigger functions qualify table names with the schema. Otherwise, a temporary table could hide a table.
 */
const bundleRules = (): string[] => [
  `create or replace function "entries_no_update"() returns trigger language plpgsql as $$ declare may boolean; begin
    if length(new.bytes) = 0 and length(old.bytes) > 0 and ${[
      ...COLUMNS_UNCHANGED_BY_BUNDLING.map((column) => `new."${column}" is not distinct from old."${column}"`),
      "old.followed = 0",
    ].join(" and ")} then
      execute pg_catalog.format('select exists (select 1 from %1$I.entry_bundles where start = $1) and exists (select 1 from %1$I.ledger_head where size >= $1 + 256)', tg_table_schema)
        into may using old.seq - old.seq % 256::bigint;
      if may then return new; end if;
    end if;
    raise exception using errcode = 'integrity_constraint_violation', message = 'entries is append-only: a row cannot be changed'; end $$`,
  `create function "entry_bundles_in_line"() returns trigger language plpgsql as $$ declare may boolean; begin
    execute pg_catalog.format('select $1 = coalesce((select max(start) + 256 from %1$I.entry_bundles), 0) and exists (select 1 from %1$I.ledger_head where size >= $1 + 256)', tg_table_schema)
      into may using new.start;
    if may and length(new.bytes) > 0 then return new; end if;
    raise exception using errcode = 'integrity_constraint_violation', message = ${quoteLiteral(`entry_bundles is append-only: ${INVALID_BUNDLE_MESSAGE}`)}; end $$`,
  `create trigger "entry_bundles_in_line" before insert on "entry_bundles" for each row execute function "entry_bundles_in_line"()`,
];

/**
 * Returns the statements of `SqlDialect.finishSchema` that refuse changes outside a transaction, an entry that the head
 * does not cover, and a head without its entries.
 */
const guardRules = (tables: readonly string[], each: "statement" | "row"): string[] => [
  raisingFunction("assent_no_transaction", "25P01", "a change outside a transaction of the service is refused"),
  ...tables.map((table) => guardOf(table, each)),
  `create function assent_entry_covered() returns trigger language plpgsql as $$ begin
    if coalesce(pg_catalog.current_setting('assent.copying', true), '') <> 'on' and not exists (select 1 from ledger_head where id = 1 and size > new.seq) then
      raise exception using errcode = 'integrity_constraint_violation', message = pg_catalog.format('entry %s is not covered by the head', new.seq);
    end if;
    return new; end $$`,
  `create trigger entries_covered before insert on entries for each row execute function assent_entry_covered()`,
  `create function assent_head_covers() returns trigger language plpgsql as $$ begin
    if (select count(*) from entries where seq >= old.size and seq < new.size) <> new.size - old.size then
      raise exception using errcode = 'integrity_constraint_violation', message = pg_catalog.format('the head moved to %s without its entries', new.size);
    end if;
    return null; end $$`,
  `create constraint trigger ledger_head_covers after update on ledger_head deferrable initially deferred for each row when (new.size > old.size) execute function assent_head_covers()`,
];

// No trigger is needed against a second row with the same key: the primary key rejects it, or the insert statement
// skips it.
const appendOnly = (table: string, each: "statement" | "row"): string[] => [
  ...refusal(table, "no_update", "before update", `${table} is append-only: a row cannot be changed`),
  ...refusal(table, "no_delete", "before delete", `${table} is append-only: a row cannot be deleted`),
  ...(each === "row"
    ? []
    : refusal(table, "no_truncate", "before truncate", `${table} is append-only: it cannot be emptied`)),
];

const oneRow = (table: string, column: string, each: "statement" | "row"): string[] => [
  ...refusal(
    table,
    "no_shrink",
    "before update",
    `${table} cannot go back: ${column} only grows`,
    `when (new."${column}" < old."${column}")`,
  ),
  ...refusal(table, "no_delete", "before delete", `${table} cannot be deleted`),
  ...(each === "row" ? [] : refusal(table, "no_truncate", "before truncate", `${table} cannot be emptied`)),
];

const dialectWith = (each: "statement" | "row"): SqlDialect => ({
  db: postgresSqlBuilder as unknown as Kysely<never>,
  types: {
    bytes: "bytea",
    integer: "bigint",
    text: 'text collate "C"',
    packed: null,
    bytesLiteral: (hex) => `'\\x${hex}'::bytea`,
  },
  // A restart or a failover changes the start time. A restore into the running server changes the id of the database or
  // of the table.
  server: {
    incarnation: sql<string>`pg_catalog.concat_ws('/', (extract(epoch from pg_catalog.pg_postmaster_start_time()) * 1000000.0)::bigint, (select oid from pg_database where datname = pg_catalog.current_database()), ledger_head.tableoid)`,
    settled: sql<string | null>`(select value from meta where name = ${sql.lit(SETTLED_INCARNATION_KEY)})`,
  },
  // Do not use now(), which is the time at which the transaction started, before it waited for locks.
  now: sql<number>`(extract(epoch from pg_catalog.clock_timestamp()) * 1000.0)::bigint`,
  usesGenericPlans: true,
  ignoreCaseLike: "ilike",
  hasTable: (name) => `select 1 as there where pg_catalog.to_regclass('${name}') is not null`,
  given: (json, columns) =>
    sql`pg_catalog.json_to_recordset(cast(${json} as text)::json) as given(${sql.raw(
      Object.entries(columns)
        .map(([name, type]) => `"${name}" ${type === "text" ? "text" : "bigint"}`)
        .join(", "),
    )})`,
  // Pass the rows as JSON. Separate arrays for the columns are far slower on the client. Separate statements for the
  // rows are slower on both sides.
  insertRows({ into, names }, rows) {
    const columns = names.map((name) => `"${name}"`).join(", ");
    const objects = rows.map((row) => {
      const object: Record<string, string | number> = {};
      row.forEach((value, i) => {
        if (value !== null) object[names[i] as string] = value instanceof Uint8Array ? hexOf(value) : value;
      });
      return object;
    });
    return {
      sql: `insert into "${into}" (${columns}) select ${columns} from pg_catalog.json_populate_recordset(null::"${into}", $1::text::json)`,
      values: [JSON.stringify(objects)],
    };
  },
  tableOptions: () => "",
  suspendAppendOnly: (tables) => ({
    begin: tables.map((table) => `alter table "${table}" disable trigger "${table}_no_delete"`),
    end: tables.map((table) => `alter table "${table}" enable trigger "${table}_no_delete"`),
  }),
  protect: (table, rule) => (rule.kind === "append-only" ? appendOnly(table, each) : oneRow(table, rule.column, each)),
  finishSchema: (guarded) => [...bundleRules(), ...guardRules(guarded, each)],
});

export const postgresDialect = dialectWith("statement");
/** The dialect for servers that have only row triggers. These cannot refuse TRUNCATE. */
export const rowTriggersDialect = dialectWith("row");
