/** Joins a list of requested values with the rows that contain them. */
import { sql, type RawBuilder } from "kysely";
import type { SqlDialect } from "./dialect.ts";
import type { Tables } from "./table-schema.ts";

interface Joins {
  innerJoin(table: string, on: (join: Join) => unknown): unknown;
  leftJoin(table: string, on: (join: Join) => unknown): unknown;
  innerJoinLateral(table: unknown, on: (join: Join) => unknown): unknown;
  leftJoinLateral(table: unknown, on: (join: Join) => unknown): unknown;
}
interface Join {
  on(condition: RawBuilder<boolean>): unknown;
  onTrue(): unknown;
}

/** Returns a condition that is true if the row has the same values as "given" in these columns. */
export const sameColumnsAsGiven = (table: keyof Tables, columns: readonly string[]): RawBuilder<boolean> =>
  sql`${sql.join(
    columns.map((column) => sql`${sql.ref(`${table}.${column}`)} = ${sql.ref(`given.${column}`)}`),
    sql` and `,
  )}`;

/**
 * Joins each row of "given" (`SqlDialect.given`), from which `query` selects, with the matching rows of a table. If the
 * planner uses generic plans, the form of the statement forces one lookup for each row. Otherwise a plan that was made
 * while the table was small would read the whole table for each batch, under the ledger's lock, until the table is
 * analyzed again.
 */
export function joinGivenRows<Query>(
  query: Query,
  kind: "inner" | "left",
  table: keyof Tables,
  on: RawBuilder<boolean>,
  { usesGenericPlans }: Pick<SqlDialect, "usesGenericPlans">,
): Query {
  // Kysely cannot type the columns of "given".
  const joins = query as Joins;
  const joined = usesGenericPlans
    ? joins[`${kind}JoinLateral`](sql`(select * from ${sql.table(table)} where ${on} offset 0)`.as(table), (join) =>
        join.onTrue(),
      )
    : joins[`${kind}Join`](table, (join) => join.on(on));
  return joined as Query;
}
