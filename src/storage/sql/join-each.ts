/** Joins of what is asked for with the tables that have it. */
import { sql, type RawBuilder } from "kysely";
import type { SqlDialect } from "./dialect.ts";
import type { Tables } from "./schema.ts";

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

/** Whether a row of the table has in these columns what "given" has. */
export const sameAsGiven = (table: keyof Tables, columns: readonly string[]): RawBuilder<boolean> =>
  sql`${sql.join(
    columns.map((column) => sql`${sql.ref(`${table}.${column}`)} = ${sql.ref(`given.${column}`)}`),
    sql` and `,
  )}`;

/**
 * The rows of a table that belong to each row of "given" (`SqlDialect.given`), which `query` selects from. A planner that goes
 * by the rows that it expects looks them up one by one then: the plan that it makes while the table is small, and keeps,
 * would else read the whole table for each batch, under the ledger's lock, until the table is analyzed.
 */
export function joinEach<Query>(
  query: Query,
  kind: "inner" | "left",
  table: keyof Tables,
  on: RawBuilder<boolean>,
  { expectsRows }: Pick<SqlDialect, "expectsRows">,
): Query {
  // Kysely has no types for what "given" is.
  const joins = query as Joins;
  const joined = expectsRows
    ? joins[`${kind}JoinLateral`](sql`(select * from ${sql.table(table)} where ${on} offset 0)`.as(table), (join) =>
        join.onTrue(),
      )
    : joins[`${kind}Join`](table, (join) => join.on(on));
  return joined as Query;
}
