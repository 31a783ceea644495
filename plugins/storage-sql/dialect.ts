import type { Kysely, RawBuilder } from "kysely";
import type { PackedSql } from "./packed-columns.ts";
import type { SqlValue, Statement } from "./statement.ts";

/** A statement that inserts one row into one table. */
export type InsertStatement = Statement & { readonly into: string };

/** End of the error message of the trigger that refuses a bundle. */
export const INVALID_BUNDLE_MESSAGE = "a bundle follows the last one, is covered by the head, and is not empty";

/** Columns of an entry that do not change when its bytes are moved to a bundle. */
export const COLUMNS_UNCHANGED_BY_BUNDLING = [
  "seq",
  "leaf_hash",
  "type",
  "action_id",
  "agent_id",
  "submitted_by",
  "followed",
  "created_at",
] as const;

/** How a database stores the values of columns. */
export interface SqlTypes {
  readonly bytes: string;
  /** Type for integers up to 2^53. */
  readonly integer: string;
  /** Type for strings. Compares UTF-8 bytes, so that the order does not depend on the machine's locale. */
  readonly text: string;
  /**
   * SQL that stores columns of type `uuid` and `hash` as bytes (packed-columns.ts). If null, they are stored as
   * strings.
   */
  readonly packed: PackedSql | null;
  /** Returns a literal of bytes. */
  bytesLiteral(hex: string): string;
}

/**
 * The changes that a table permits.
 * - `append-only`: no UPDATE and no DELETE. A second row with the same key is an error (`refuse`) or ignored (`keep`).
 * - `one-row`: no DELETE, no second row, and no UPDATE that lowers the column.
 */
export type TableRule =
  | { kind: "append-only"; key: readonly string[]; onDuplicate: "refuse" | "keep" }
  | { kind: "one-row"; column: string };

/** The differences between databases. */
export interface SqlDialect {
  /** Kysely for this database. It only builds SQL. */
  readonly db: Kysely<never>;
  /** The types of columns. */
  readonly types: SqlTypes;
  /**
   * Columns for a read of `ledger_head` that identify the running database. Null if no other process can use the store.
   */
  readonly server: { incarnation: RawBuilder<string>; settled: RawBuilder<string | null> } | null;
  /** The current time by the database's clock. Milliseconds since the epoch. */
  readonly now: RawBuilder<number>;
  /**
   * Whether the planner can plan a statement before it knows the parameters (a generic plan of Postgres). If so,
   * statements have a form for which the planner can use only the right index.
   */
  readonly usesGenericPlans: boolean;
  /** The LIKE operator that ignores the case of ASCII letters. */
  readonly ignoreCaseLike: "like" | "ilike";
  /** Returns a query that has a row if the store has the table. */
  hasTable(name: string): string;
  /**
   * Returns the clause after the columns of `create table`. `clustered`: rows are small and found only by primary key.
   */
  tableOptions(clustered: boolean): string;
  /** Returns triggers that refuse every change that breaks the rule, even if another program makes it. */
  protect(table: string, rule: TableRule): string[];
  /**
   * Returns the statements that follow the creation of all tables.
   * - They permit emptying the bytes of an entry only if processes do not follow entries of its type, a bundle exists
   *   for its tile, the head covers the tile, and all other columns are unchanged.
   * - They permit inserting a bundle only directly after the last bundle, and only if the head covers its tile.
   * - In a database that can run a statement outside its transaction after the connection was lost, they refuse every
   *   change to the `guarded` tables outside a transaction that `SqlEngine.begin` began. They then also refuse an entry
   *   that the head does not cover, and a head without its entries.
   */
  finishSchema(guarded: readonly string[]): string[];
  /**
   * Returns statements that let a repair delete rows of append-only tables within its transaction. If absent, `assent
   * audit --repair` is not supported.
   */
  suspendAppendOnly?(tables: readonly string[]): { begin: string[]; end: string[] };
  /** Returns SQL for a table "given" whose rows are the objects of a JSON array, with these members as columns. */
  given(json: RawBuilder<unknown>, columns: Readonly<Record<string, "text" | "integer">>): RawBuilder<unknown>;
  /**
   * Prepares one statement that inserts several rows. The values of each row are in the order of `insert.names`. A
   * dialect without this method inserts rows one at a time.
   */
  insertRows?(insert: InsertStatement, rows: readonly (readonly SqlValue[])[]): { sql: string; values: SqlValue[] };
}
