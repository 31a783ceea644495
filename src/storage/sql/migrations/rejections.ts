/** Finds the rejection that holds for a request. Of all actions the index has the few that have one. */
import { sql, type RawBuilder } from "kysely";
import type { SqlDialect } from "../dialect.ts";

export function rejections({ db, integer }: SqlDialect): string[] {
  return [
    db.schema.alterTable("actions").addColumn("rejection_until", integer as RawBuilder<never>),
    db.schema
      .createIndex("actions_rejected")
      .on("actions")
      .columns(["request_hash", "rejection_until"])
      .where(sql<boolean>`rejection_until is not null`),
  ].map((statement) => statement.compile().sql);
}
