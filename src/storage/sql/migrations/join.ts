/** Finds the actions of one request, and among them what a submission can join. */
import { sql, type RawBuilder } from "kysely";
import type { SqlDialect } from "../dialect.ts";

/** Who waits for an action, and when it was last asked for. */
export function asks({ db, integer, text }: SqlDialect): string[] {
  const add = (column: string, type: RawBuilder<unknown>): string =>
    db.schema
      .alterTable("actions")
      .addColumn(column, type as RawBuilder<never>)
      .compile().sql;
  return [add("asked_at", integer), add("waits", text)];
}

export function join({ db }: SqlDialect): string[] {
  const index = (name: string, columns: string[]) => db.schema.createIndex(name).on("actions").columns(columns);
  return [
    index("actions_by_request", ["request_hash", "decision_seq"]),
    // By the end of their time: of what was submitted often and never started, the newest is enough. Of what waits the
    // status comes first, or the planner takes the index over all that waits.
    index("actions_open_waiting", ["status", "submitted_by", "request_hash", "expires_at", "decision_seq"]).where(
      sql<boolean>`status = 'pending_approval'`,
    ),
    index("actions_open_startable", ["submitted_by", "request_hash", "permit_expires_at", "decision_seq"]).where(
      sql<boolean>`status in ('allowed', 'approved')`,
    ),
  ].map((statement) => statement.compile().sql);
}
