/** An approval has a life of its own: what was the end of its one permit is the end of the time to start. */
import type { SqlDialect } from "../dialect.ts";

export function approvals({ db }: SqlDialect): string[] {
  const actions = db.schema.alterTable("actions");
  return [
    actions.renameColumn("permit_expires_at", "approved_until").compile().sql,
    actions.dropColumn("permit_issued_at").compile().sql,
  ];
}
