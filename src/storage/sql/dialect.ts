import type { Kysely, RawBuilder } from "kysely";
import type { PackedSql } from "./forms.ts";
import type { SqlValue, Statement } from "./statement.ts";

/** A statement that inserts one row into one table. */
export type Insert = Statement & { readonly into: string };

/** Error message for a bundle that a trigger refuses. */
export const INVALID_BUNDLE_MESSAGE = "a bundle follows the last one, is covered by the head, and is not empty";

/** Columns of an entry that stay as they are when its bytes are moved into a bundle. */
export const COLUMNS_UNCHANGED_BY_BUNDLING = [
  "seq",
  "leaf_hash",
  "type",
  "action_id",
  "agent_id",
  "submitted_by",
  "created_at",
] as const;

/** The differences between databases. */
export interface SqlDialect {
  readonly db: Kysely<never>;
  /**
   * Column types. `integer` holds every integer up to 2^53; `text` compares by code unit, so that the order does not depend
   * on the machine's locale.
   */
  readonly types: { readonly bytes: string; readonly integer: string; readonly text: string };
  /** Columns of a read of `ledger_head` that name the running database. Null if one process has the store to itself. */
  readonly server: { incarnation: RawBuilder<string>; settled: RawBuilder<string | null> } | null;
  /** The database's own clock at the moment it is read. Milliseconds since the epoch. */
  readonly now: RawBuilder<number>;
  /** Returns a query that has a row if the store has the table. */
  hasTable(name: string): string;
  /** Statements that run before the first table of a new store is created. */
  readonly beginnings?: readonly string[];
  /**
   * Returns triggers that refuse every change to these tables outside of a transaction that `SqlEngine.begin` began, an entry
   * that the head does not cover, and a head without its entries. For databases where a statement can run by itself after
   * the connection of its transaction was lost.
   */
  guards?(tables: readonly string[]): string[];
  /**
   * Statements that let a repair delete rows of append-only tables in its transaction. If absent, the database cannot
   * be repaired.
   */
  suspendAppendOnly?(tables: readonly string[]): { begin: string[]; end: string[] };
  /**
   * Whether the planner estimates row counts before it knows the values. It then needs statements for which it can only
   * use the right index.
   */
  readonly expectsRows: boolean;
  /** How columns of type `uuid` and `hash` are stored (forms.ts). If null, as text. */
  readonly packed: PackedSql | null;
  /** Returns a column of `actions` as an expression that no index matches. */
  unindexed(column: string): RawBuilder<never>;
  /** A literal of bytes. */
  bytesOf(hex: string): string;
  /** A JSON array of objects, as a table named "given" that has these members as columns. */
  given(json: RawBuilder<unknown>, columns: Readonly<Record<string, "text" | "integer">>): RawBuilder<unknown>;
  /**
   * Prepares one statement that inserts several rows, whose values are in the order of its names. If absent, rows are
   * inserted one by one.
   */
  insertRows?(insert: Insert, rows: readonly (readonly SqlValue[])[]): { sql: string; values: SqlValue[] };
  /**
   * Returns the clause after the columns of `create table`. `clustered`: rows are small and found by primary key only.
   */
  tableOptions(clustered: boolean): string;
  /** Returns triggers that refuse UPDATE and DELETE, and an INSERT with a key that exists: with an error, or without effect. */
  appendOnly(table: string, key: readonly string[], onDuplicate: "refuse" | "keep"): string[];
  /**
   * Returns statements that follow `appendOnly` of "entries" and "entry_bundles". They let the bytes of an entry be replaced
   * by none if no process follows entries of its type, a bundle exists for its tile, the head covers the tile, and all other columns stay
   * as they are. They let a bundle be inserted only after the last one, if the head covers its tile.
   */
  bundleRules(): string[];
  /** Returns triggers for a table of one row: they refuse DELETE, a second row, and an UPDATE that lowers the column. */
  neverShrinks(table: string, column: string): string[];
}
