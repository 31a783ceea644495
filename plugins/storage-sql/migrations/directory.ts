/** Finds the entries of keys, agents and stops among all the others. */
import { sql } from "kysely";
import type { SqlDialect } from "../dialect.ts";

/** The type comes first, or the planner walks all entries by their number. */
function entriesOf({ db }: SqlDialect, type: string): string {
  return db.schema
    .createIndex(`entries_${type}`)
    .on("entries")
    .columns(["type", "seq"])
    .where(sql<boolean>`type = ${sql.lit(type)}`)
    .compile().sql;
}

export function directory(kit: SqlDialect): string[] {
  return ["api_key", "agent"].map((type) => entriesOf(kit, type));
}

export function stops(kit: SqlDialect): string[] {
  return [entriesOf(kit, "stop")];
}
