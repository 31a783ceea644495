/**
 * Reads that are sent directly after the statement that locks the ledger's head, before its response arrives. They
 * return the newest entry, and the leaf hashes that other processes appended after this process's last batch. The
 * transaction then reads these rows from memory.
 */
import { sql, type Kysely } from "kysely";
import type { SqlRead, SqlTransaction } from "./engine.ts";
import * as schema from "./table-schema.ts";
import type { Tables } from "./table-schema.ts";
import { bindValues, param, prepare, type SqlRow, type Statement } from "./statement.ts";

/** Maximum number of prefetched leaf hashes. A transaction that needs more reads all of them from the database. */
const MOST_HASHES = 1_000;

type LockReadStatements = ReturnType<typeof prepareLockReads>;

export function prepareLockReads(db: Kysely<Tables>) {
  return {
    hashes: prepare(() =>
      db
        .selectFrom("entries")
        .select(["seq", "leaf_hash"])
        .where("seq", ">=", param("from"))
        .where("seq", "<", param("to"))
        .orderBy("seq"),
    ),
    newest: prepare(() =>
      db
        .selectFrom("entries")
        .select(schema.ENTRY_COLUMNS)
        .where(
          "seq",
          "=",
          db
            .selectFrom("ledger_head")
            .select(sql<number>`size - 1`.as("newest"))
            .where("id", "=", sql.lit(1)),
        ),
    ),
  };
}

/** Lists the reads for a transaction that will probably read the ledger from sequence number `from`. */
export function listLockReads({ hashes, newest }: LockReadStatements, from: number): SqlRead[] {
  return [
    { sql: hashes.sql, values: bindValues(hashes, { from, to: from + MOST_HASHES }, false) },
    { sql: newest.sql, values: [] },
  ];
}

/** Returns the prefetched rows of a statement; null if they were not prefetched. */
export type FindPrefetchedRows = (statement: Statement, values: object) => SqlRow[] | null;

/**
 * Returns a lookup in the rows that the lock and the reads after it returned. These rows are valid until the
 * transaction appends entries.
 * @param from the argument of `listLockReads`; null if nothing was prefetched
 */
export function createPrefetchedRows(
  { head, reads }: Pick<SqlTransaction, "head" | "reads">,
  statements: { head: Statement; leafHashes: Statement; entries: Statement },
  from: number | null,
): FindPrefetchedRows {
  const [hashes, newest] = from === null ? [] : (reads ?? []);
  return (statement, values) => {
    if (statement === statements.head) return head ?? null;
    const range = values as { from: number; to: number };
    if (statement === statements.leafHashes && hashes !== undefined && from !== null) {
      if (range.from < from || range.to > from + MOST_HASHES) return null;
      return hashes.filter(({ seq }) => Number(seq) >= range.from && Number(seq) < range.to);
    }
    if (statement === statements.entries && range.to === range.from + 1 && newest?.[0]?.["seq"] === range.from)
      return newest;
    return null;
  };
}
