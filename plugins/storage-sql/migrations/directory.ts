/** Finds the entries of keys and agents among all the others. */
import { sql } from "kysely";
import type { SqlDialect } from "../dialect.ts";

/** The type comes first, or the planner walks all entries by their number. */
export function directory({ db }: SqlDialect): string[] {
  return (["api_key", "agent"] as const).map(
    (type) =>
      db.schema
        .createIndex(`entries_${type}`)
        .on("entries")
        .columns(["type", "seq"])
        .where(sql<boolean>`type = ${sql.lit(type)}`)
        .compile().sql,
  );
}
