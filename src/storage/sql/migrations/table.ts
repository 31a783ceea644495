import type { CreateTableBuilder, RawBuilder } from "kysely";
import type { SqlDialect } from "../dialect.ts";

/** Begins a table: its columns in order, all of them required but the nullable ones. */
export function tablesOf(kit: SqlDialect) {
  return (
    name: string,
    nullable: readonly string[],
    columns: Record<string, RawBuilder<unknown>>,
  ): CreateTableBuilder<string, string> => {
    let builder: CreateTableBuilder<string, string> = kit.db.schema.createTable(name);
    for (const [column, type] of Object.entries(columns)) {
      builder = builder.addColumn(column, type as RawBuilder<never>, (c) =>
        nullable.includes(column) ? c : c.notNull(),
      );
    }
    return builder;
  };
}
