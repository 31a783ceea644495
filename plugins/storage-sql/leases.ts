/** Leases of background jobs. They use only the database's clock, because the clocks of processes differ. */
import { sql, type Kysely, type RawBuilder } from "kysely";
import type { Tables } from "./table-schema.ts";
import { param, prepare, readRows, type SqlReader } from "./statement.ts";

/** Leases that expired longer ago than this, or expire later than this, are deleted. Milliseconds. */
const DAY = 86_400_000;

type LeaseStatements = ReturnType<typeof prepareLeases>;

export function prepareLeases(db: Kysely<Tables>, now: RawBuilder<number>) {
  const term = sql<number>`cast(${param("ms")} as bigint)`;
  const end = sql<number>`${now} + ${term}`;
  // If a lease expires later than this, the database's clock was set back after the lease was written. The limit is two
  // terms, because another process can have acquired the lease after `now` was read.
  const beyond = sql<number>`${now} + 2 * ${term}`;
  return {
    acquire: prepare(() =>
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
    release: prepare(() =>
      db.deleteFrom("leases").where("name", "=", param("name")).where("holder", "=", param("holder")),
    ),
    active: prepare(() =>
      db
        .selectFrom("leases")
        .select(["name", "holder"])
        .where("until", ">", now)
        .where("until", "<=", beyond)
        .orderBy("name"),
    ),
    // Deletes leases that expired long ago, for example leases of jobs that are no longer configured. Also deletes
    // leases that expire far in the future, which can exist if the clock was set back after they were written.
    deleteStale: prepare(() =>
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

export function readActiveLeases(
  { active }: LeaseStatements,
  db: SqlReader,
  ms: number,
): Promise<{ name: string; holder: string }[]> {
  return readRows(db, active, { ms });
}
