/** Finds the entries that every process keeps up with among all the others. */
import { sql } from "kysely";
import type { FollowedType } from "../../../domain/entries.ts";
import type { SqlDialect } from "../dialect.ts";

/** The type comes first, or the planner walks all entries by their number. */
function entriesOf({ db }: SqlDialect, type: FollowedType): string {
  return db.schema
    .createIndex(`entries_${type}`)
    .on("entries")
    .columns(["type", "seq"])
    .where(sql<boolean>`type = ${sql.lit(type)}`)
    .compile().sql;
}

export function directory(kit: SqlDialect): string[] {
  return [entriesOf(kit, "api_key"), entriesOf(kit, "agent")];
}

export function stops(kit: SqlDialect): string[] {
  return [entriesOf(kit, "stop")];
}

export function permitKeys(kit: SqlDialect): string[] {
  return [entriesOf(kit, "permit_key")];
}

export function logKeys(kit: SqlDialect): string[] {
  return [entriesOf(kit, "log_key")];
}
