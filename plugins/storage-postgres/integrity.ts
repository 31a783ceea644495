/**
 * Compares indexes with their tables. A damaged index rejects valid keys, but reads of the table do not reveal that.
 */
import { StorageError } from "../../src/storage/index.ts";
import { toStorageError } from "./postgres-errors.ts";
import type { Session } from "./database-session.ts";

interface Index {
  oid: string;
  name: string;
  table: string;
  /** Quoted names of the indexed columns, separated by commas; null if there are only expressions. */
  columns: string | null;
  has_expressions: boolean;
  predicate: string | null;
}

const INDEXES = `select i.indexrelid::text as oid, i.indexrelid::regclass::text as name, i.indrelid::regclass::text as table,
    (select pg_catalog.string_agg(pg_catalog.quote_ident(a.attname), ', ') from pg_attribute a
      where a.attrelid = i.indrelid and a.attnum = any (i.indkey::int2[]) and a.attnum > 0) as columns,
    0 = any (i.indkey::int2[]) as has_expressions,
    pg_catalog.pg_get_expr(i.indpred, i.indrelid) as predicate
  from pg_index i join pg_class c on c.oid = i.indexrelid join pg_am m on m.oid = c.relam
  where c.relnamespace = pg_catalog.current_schema()::regnamespace::oid and m.amname = 'btree' order by 2`;
const AMCHECK = `select pg_catalog.quote_ident(n.nspname) || '.bt_index_check' as function
  from pg_extension e join pg_namespace n on n.oid = e.extnamespace join pg_proc p on p.pronamespace = n.oid
  where e.extname = 'amcheck' and p.proname = 'bt_index_check' and p.pronargs = 2 and pg_catalog.has_function_privilege(p.oid, 'execute')`;
const FROM_TABLE =
  "set local enable_seqscan = on; set local enable_indexscan = off; set local enable_indexonlyscan = off; set local enable_bitmapscan = off";
const FROM_INDEX =
  "set local enable_seqscan = off; set local enable_indexscan = on; set local enable_indexonlyscan = on; set local enable_bitmapscan = off";

/**
 * Finds differences between indexes and tables. Uses the extension amcheck if this role has the right to. Otherwise
 * reads the columns of each index without expressions once from the table and once from the index.
 */
export async function findIndexFaults(session: Session): Promise<string[]> {
  const [amcheck] = (await session.query(AMCHECK, [])).rows;
  const indexes = (await session.query(INDEXES, [])).rows as unknown as Index[];
  const faults: string[] = [];
  for (const index of indexes) {
    // Check each index in a separate transaction, because a failed statement ends its transaction.
    await session.script("begin isolation level repeatable read read only; set local statement_timeout = 0");
    try {
      const fault =
        amcheck === undefined
          ? await compareWithTable(session, index)
          : await checkIndex(session, String(amcheck["function"]), index);
      if (fault !== null) faults.push(`the index ${index.name} of ${index.table} ${fault}`);
    } finally {
      await session.script("rollback");
    }
  }
  return faults;
}

async function checkIndex(session: Session, bt_index_check: string, { oid }: Index): Promise<string | null> {
  try {
    await session.query(`select ${bt_index_check}($1::oid::regclass, true)`, [oid]);
    return null;
  } catch (error) {
    const failure = toStorageError(error, "check it");
    if (failure.kind === "corrupt") return `is damaged: ${failure.message}`;
    throw failure;
  }
}

/** Compares an index-only scan, which returns the content of the index, with a scan of the table. */
async function compareWithTable(
  session: Session,
  { table, columns, has_expressions, predicate }: Index,
): Promise<string | null> {
  // An index-only scan cannot return an expression.
  if (has_expressions || columns === null) return null;
  const content = `select count(*)::text as rows, coalesce(sum(pg_catalog.hashtextextended(row(${columns})::text, 0)::numeric), 0)::text as hash
    from ${table}${predicate === null ? "" : ` where ${predicate}`}`;
  const read = async (settings: string): Promise<{ rows: string; hash: string }> => {
    // Do not prepare the statement: a prepared statement would reuse the plan of the first scan.
    const row = (await session.script(`${settings}; ${content}`)).at(-1)?.rows[0];
    if (row === undefined) throw new StorageError("unavailable", "Postgres returned no row");
    return { rows: String(row["rows"]), hash: String(row["hash"]) };
  };
  const [stored, indexed] = [await read(FROM_TABLE), await read(FROM_INDEX)];
  if (stored.rows !== indexed.rows) return `has ${indexed.rows} rows, but the table has ${stored.rows}`;
  return stored.hash === indexed.hash ? null : "has values that differ from the table";
}
