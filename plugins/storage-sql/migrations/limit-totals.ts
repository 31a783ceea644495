/** Running totals of what was used of a limit: see ../limits.ts. */
import type { SchemaKit } from "../dialect.ts";
import { tablesOf } from "./table.ts";

export function limitTotals(kit: SchemaKit): string[] {
  const { integer, text } = kit;
  const table = tablesOf(kit)("limit_totals", [], {
    policy: text,
    limit_name: text,
    subject: text,
    from_at: integer,
    to_at: integer,
    uses: integer,
    amount: integer,
  });
  return [
    kit
      .finish(table.addPrimaryKeyConstraint("limit_totals_key", ["policy", "limit_name", "subject", "from_at"]), true)
      .compile().sql,
    ...(kit.guard === undefined ? [] : [kit.guard("limit_totals")]),
  ];
}
