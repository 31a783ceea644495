/** Reads the schema of a store for the audit. */
import { type SchemaObject, compareSchemas } from "../storage-sql/api.ts";
import { readErrorCode } from "./postgres-errors.ts";
import type { Session } from "./database-session.ts";

/**
 * Lists the tables whose names are in `$1` (separated by commas), their columns, indexes, constraints and triggers, and
 * the functions that the triggers call. Names in definitions are unqualified, because the schema is on the search path.
 */
const OBJECTS = `
  with tables as (
    select oid, relname from pg_class
    where relnamespace = pg_catalog.current_schema()::regnamespace::oid and relkind in ('r', 'p') and relname = any (pg_catalog.string_to_array($1, ','))
  ), triggers as (
    select t.*, tables.relname from pg_trigger t join tables on tables.oid = t.tgrelid where not t.tgisinternal
  )
  select pg_catalog.concat('table ', relname) as name, '' as definition from tables
  union all
  select pg_catalog.concat('column ', relname, '.', attname), pg_catalog.concat_ws(' ', pg_catalog.format_type(atttypid, atttypmod), attnotnull::text,
      case when attcollation = 0::oid then null else attcollation::regcollation::text end, pg_catalog.pg_get_expr(d.adbin, d.adrelid))
    from pg_attribute a join tables on tables.oid = a.attrelid
    left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
    where attnum > 0 and not attisdropped
  union all
  select pg_catalog.concat('index ', i.indexrelid::regclass),
      pg_catalog.concat(relname, ': ', pg_catalog.pg_get_indexdef(i.indexrelid, 0, true), ' ', i.indisvalid::text)
    from pg_index i join tables on tables.oid = i.indrelid
  union all
  select pg_catalog.concat('constraint ', conname, ' of ', relname),
      pg_catalog.concat(pg_catalog.pg_get_constraintdef(c.oid, true), ' ', convalidated::text)
    from pg_constraint c join tables on tables.oid = c.conrelid
    -- Excludes NOT NULL constraints, which Postgres lists from version 18 on. The columns contain the same fact.
    where contype <> 'n'
  union all
  select pg_catalog.concat('trigger ', tgname, ' of ', relname),
      pg_catalog.concat(pg_catalog.pg_get_triggerdef(oid, true), ' ', tgenabled) from triggers
  union all
  select distinct on (p.oid) pg_catalog.concat('function ', p.proname), pg_catalog.concat_ws(' ', l.lanname, p.prosecdef::text, pg_catalog.array_to_string(p.proconfig, ','), p.prosrc)
    from triggers t join pg_proc p on p.oid = t.tgfoid join pg_language l on l.oid = p.prolang`;

const INSUFFICIENT_PRIVILEGE = "42501";
const READ_ONLY = "25006";

/**
 * Returns the differences between the store's schema and the schema that these statements create. Creates the expected
 * schema in a separate namespace, in a transaction that is rolled back, because Postgres prints definitions differently
 * from the statements.
 */
export async function findSchemaFaults(session: Session, statements: readonly string[]): Promise<string[]> {
  const tables = statements.flatMap((statement) => /^create table "(\w+)"/.exec(statement)?.[1] ?? []).join(",");
  const read = async (): Promise<SchemaObject[]> =>
    (await session.query(OBJECTS, [tables])).rows.map((row) => ({
      name: String(row["name"]),
      definition: String(row["definition"]),
    }));
  await session.script("begin; set local statement_timeout = 0");
  try {
    const stored = await read();
    await session.script(
      "create schema assent_audit; set local search_path = assent_audit, pg_temp; select pg_catalog.set_config('assent.transaction', 'audit', true)",
    );
    for (const statement of statements) await session.script(statement);
    return compareSchemas(await read(), stored);
  } catch (error) {
    if (![INSUFFICIENT_PRIVILEGE, READ_ONLY].includes(readErrorCode(error) ?? "")) throw error;
    return [
      "the schema was not compared, because this role cannot create one to compare it with: grant it CREATE on the database, or run the audit on the primary",
    ];
  } finally {
    await session.script("rollback");
  }
}
