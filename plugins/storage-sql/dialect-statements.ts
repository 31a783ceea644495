/** The statements of a dialect. Each is built once, when it is first used. */
import { sql, type Kysely } from "kysely";
import { prepareUncoveredRowStatements } from "./delete-uncovered-rows.ts";
import type { SqlDialect } from "./dialect.ts";
import { prepareLeases } from "./leases.ts";
import { prepareLockReads } from "./lock-reads.ts";
import { prepareReads } from "./queries.ts";
import { prepare } from "./statement.ts";
import type { Tables } from "./table-schema.ts";
import { prepareWrites } from "./writes.ts";

export type DialectStatements = ReturnType<typeof prepareAll>;
const prepared = new WeakMap<SqlDialect, DialectStatements>();

export function getDialectStatements(dialect: SqlDialect): DialectStatements {
  const statements = prepared.get(dialect) ?? prepareAll(dialect.db as unknown as Kysely<Tables>, dialect);
  prepared.set(dialect, statements);
  return statements;
}

function prepareAll(db: Kysely<Tables>, dialect: SqlDialect) {
  return {
    reads: prepareReads(db, dialect),
    writes: prepareWrites(db, dialect),
    uncoveredRows: prepareUncoveredRowStatements(db),
    countPing: prepare(() =>
      db
        .updateTable("liveness")
        .set({ pings: sql`pings + 1` })
        .where("id", "=", sql.lit(1)),
    ),
    leases: prepareLeases(db, dialect.now),
    lockReads: prepareLockReads(db),
  };
}
