/** Which process does the shared work, and which are there. Timed by the database alone: the clocks of the processes differ. */
import { sql, type Kysely, type RawBuilder } from "kysely";
import type { Tables } from "./schema.ts";
import { param, plain, prepare, type SqlExecutor } from "./statement.ts";

/** Leases of processes that are gone are kept for so long. Milliseconds. */
const DAY = 86_400_000;

export type LeaseStatements = ReturnType<typeof prepareLeases>;

export function prepareLeases(db: Kysely<Tables>, now: RawBuilder<number>) {
  const term = sql<number>`cast(${param("ms")} as bigint)`;
  const end = sql<number>`${now} + ${term}`;
  // Of a lease that was timed before the database's clock was set back. Twice: others may have taken it since `now` was read.
  const beyond = sql<number>`${now} + 2 * ${term}`;
  return {
    take: prepare(
      db
        .insertInto("leases")
        .values({ name: param("name"), holder: param("holder"), until: end })
        .onConflict((conflict) =>
          conflict
            .column("name")
            .doUpdateSet({ holder: param<string>("holder"), until: end })
            .where((eb) =>
              eb.or([
                eb("leases.holder", "=", param<string>("holder")),
                eb("leases.until", "<=", now),
                eb("leases.until", ">", beyond),
              ]),
            ),
        ),
    ),
    release: prepare(db.deleteFrom("leases").where("name", "=", param("name")).where("holder", "=", param("holder"))),
    lasting: prepare(
      db
        .selectFrom("leases")
        .select(["name", "holder"])
        .where("until", ">", now)
        .where("until", "<=", beyond)
        .orderBy("name"),
    ),
    // Every process has its own lease, so those of ended processes must be deleted.
    forget: prepare(
      db
        .deleteFrom("leases")
        .where((eb) =>
          eb.or([
            eb("until", "<", sql<number>`${now} - ${sql.lit(DAY)}`),
            eb("until", ">", sql<number>`${now} + ${sql.lit(DAY)}`),
          ]),
        ),
    ),
  };
}

export async function lastingLeases(
  { lasting }: LeaseStatements,
  db: Pick<SqlExecutor, "all">,
  ms: number,
): Promise<{ name: string; holder: string }[]> {
  return (await db.all(lasting, { ms })).map((row) => plain<{ name: string; holder: string }>(row));
}
