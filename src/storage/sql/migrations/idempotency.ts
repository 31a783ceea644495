/** Finds idempotency keys by their age, so that old ones can go. */
import type { SqlDialect } from "../dialect.ts";

export function idempotencyAge({ db }: SqlDialect): string[] {
  return [
    db.schema
      .createIndex("idempotency_by_age")
      .on("idempotency")
      .columns(["created_at", "key_id", "route", "idempotency_key"])
      .compile().sql,
  ];
}
