/** Step 6: what plugins keep, and the counter that gives the versions. */
import { sql } from "kysely";
import type { SqlDialect } from "../dialect.ts";
import { tablesOf } from "./table.ts";

export function documents(kit: SqlDialect): string[] {
  const { integer, text } = kit;
  const table = tablesOf(kit);
  const rows = table("documents", [], { plugin: text, key: text, version: integer, value: text });
  const counter = table("document_counter", [], { id: integer, last: integer });
  return [
    kit.finish(rows.addPrimaryKeyConstraint("documents_key", ["plugin", "key"])),
    kit.finish(
      counter
        .addPrimaryKeyConstraint("document_counter_key", ["id"])
        .addCheckConstraint("document_counter_single", sql`id = 1`),
    ),
  ].map((statement) => statement.compile().sql);
}
