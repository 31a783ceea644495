/** How a migration describes a table, and the statements that create it in a dialect. */
import type { SqlDialect } from "../dialect.ts";

/**
 * Type of a column; `?` allows null. A `uuid` or `hash` column holds lowercase text, which SQLite packs into bytes: see
 * ../forms.ts.
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
  /** The table has one row, with id 1. */
  readonly singleRow?: boolean;
  /** Rows are small and found by primary key only, so SQLite stores them in the tree of the key. */
  readonly clustered?: boolean;
  /** Refuses UPDATE and DELETE. A second row with the same key is an error (`refuse`) or has no effect (`keep`). */
  readonly appendOnly?: "refuse" | "keep";
  /** Column of a single row that must not decrease. The row cannot be deleted. */
  readonly neverShrinks?: string;
  /** Statements outside of a transaction can change the table. */
  readonly unguarded?: boolean;
}

/** Returns the statements that create the table with its indexes and triggers, without `SqlDialect.guards`. */
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
    ...(table.appendOnly === undefined ? [] : dialect.appendOnly(name, table.primaryKey, table.appendOnly)),
    ...(table.neverShrinks === undefined ? [] : dialect.neverShrinks(name, table.neverShrinks)),
  ];
}

const list = (columns: readonly string[]): string => columns.map((column) => `"${column}"`).join(", ");

function columnDefinition(column: string, type: ColumnType, { types, packed }: SqlDialect): string {
  const base = type.replace("?", "") as "integer" | "text" | "bytes" | "uuid" | "hash";
  const isPacked = base === "uuid" || base === "hash";
  const stored = isPacked ? (packed === null ? types.text : packed.type) : types[base];
  const check = isPacked && packed !== null ? ` check (${packed.check(base, column)})` : "";
  return `"${column}" ${stored}${type.endsWith("?") ? "" : " not null"}${check}`;
}
