/** Finds what may start though nobody has started it: what is cancelled with its agent or its key. */
import { sql } from "kysely";
import type { SqlDialect } from "../dialect.ts";

/** One index for each status, which comes first, or the planner takes the index over all of them and sorts. */
export function permits({ db }: SqlDialect): string[] {
  return (["allowed", "approved"] as const).map(
    (status) =>
      db.schema
        .createIndex(`actions_${status}`)
        .on("actions")
        .columns(["status", "permit_expires_at", "decision_seq"])
        .where(sql<boolean>`status = ${sql.lit(status)}`)
        .compile().sql,
  );
}
