/** The description of a table in a migration, and the statements that create the table in a dialect. */
import type { SqlDialect } from "../dialect.ts";

/**
 * Type of a column; `?` allows null. A `uuid` or `hash` column contains a lowercase string, which SQLite packs into
 * bytes; see ../packed-columns.ts.
 */
type ColumnType = `${"integer" | "text" | "bytes" | "uuid" | "hash"}${"" | "?"}`;

export interface Table {
  readonly columns: Readonly<Record<string, ColumnType>>;
  readonly primaryKey: readonly string[];
  /** Names of unique indexes, with their columns. */
  readonly unique?: Readonly<Record<string, readonly string[]>>;
  /** Foreign keys: a column of this table, and the table and column that it refers to. */
  readonly references?: Readonly<Record<string, readonly [table: string, column: string]>>;
  /** Names of indexes, with their columns and the condition of a partial index. */
  readonly indexes?: Readonly<Record<string, string | readonly [columns: string, where: string]>>;
  /** Whether the table has only one row, with id 1. */
  readonly singleRow?: boolean;
  /** Whether rows are small and found only by primary key, so that SQLite stores them in the tree of the key. */
  readonly clustered?: boolean;
  /**
   * If set, the table refuses UPDATE and DELETE. A second row with the same key is an error (`refuse`) or is ignored
   * (`keep`).
   */
  readonly appendOnly?: "refuse" | "keep";
  /** Table with a single row, which cannot be deleted, and whose value in this column must not decrease. */
  readonly neverShrinks?: string;
  /** Whether statements outside a transaction can change the table. */
  readonly unguarded?: boolean;
}

/** Returns the statements that create the table with its indexes and triggers, without `SqlDialect.finishSchema`. */
export function createTable(name: string, table: Table, dialect: SqlDialect): string[] {
  const parts = [
    ...Object.entries(table.columns).map(([column, type]) => columnDefinition(column, type, dialect)),
    `constraint "${name}_key" primary key (${list(table.primaryKey)})`,
    ...Object.entries(table.references ?? {}).map(
      ([column, [other, key]]) =>
        `constraint "${name}_${column}" foreign key ("${column}") references "${other}" ("${key}")`,
    ),
    ...(table.singleRow === true ? [`constraint "${name}_single" check (id = 1)`] : []),
  ];
  return [
    `create table "${name}" (${parts.join(", ")})${dialect.tableOptions(table.clustered === true)}`,
    ...Object.entries(table.unique ?? {}).map(
      ([index, columns]) => `create unique index "${index}" on "${name}" (${list(columns)})`,
    ),
    ...Object.entries(table.indexes ?? {}).map(([index, definition]) => {
      const [columns, where] = typeof definition === "string" ? [definition] : definition;
      return `create index "${index}" on "${name}" (${columns})${where === undefined ? "" : ` where ${where}`}`;
    }),
    ...(table.appendOnly === undefined
      ? []
      : dialect.protect(name, { kind: "append-only", key: table.primaryKey, onDuplicate: table.appendOnly })),
    ...(table.neverShrinks === undefined ? [] : dialect.protect(name, { kind: "one-row", column: table.neverShrinks })),
  ];
}

const list = (columns: readonly string[]): string => columns.map((column) => `"${column}"`).join(", ");

function columnDefinition(column: string, type: ColumnType, { types }: SqlDialect): string {
  const base = type.replace("?", "") as "integer" | "text" | "bytes" | "uuid" | "hash";
  const isPacked = base === "uuid" || base === "hash";
  const stored = isPacked ? (types.packed === null ? types.text : types.packed.type) : types[base];
  const check = isPacked && types.packed !== null ? ` check (${types.packed.check(base, column)})` : "";
  return `"${column}" ${stored}${type.endsWith("?") ? "" : " not null"}${check}`;
}
