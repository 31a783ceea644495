import type { Compilable, CreateTableBuilder, Kysely, RawBuilder } from "kysely";
import type { PackedSql } from "./forms.ts";
import type { SqlValue, Statement } from "./statement.ts";

/** A statement of one row into one table. */
export type Insert = Statement & { readonly into: string };

/** Why a database refuses a bundle. */
export const OUT_OF_LINE = "a bundle stands right behind the last one, below the head, and is not empty";

/** What the databases do differently. */
export interface SqlDialect {
  readonly db: Kysely<never>;
  readonly bytes: RawBuilder<unknown>;
  /** Holds every integer up to 2^53. */
  readonly integer: RawBuilder<unknown>;
  /** Compares by code unit, so that order does not depend on the machine's locale. */
  readonly text: RawBuilder<unknown>;
  /** Columns of a read of `ledger_head` that name the running database. Null where one process has the store to itself. */
  readonly server: { incarnation: RawBuilder<string>; settled: RawBuilder<string | null> } | null;
  /** The database's own clock at the moment it is read. Milliseconds since the epoch. */
  readonly now: RawBuilder<number>;
  /** A query that has a row where the store has this table. */
  hasTable(name: string): string;
  /** A query that has a row where the table has this column. */
  hasColumn(table: string, column: string): string;
  /** What comes before the first table of a new store. */
  readonly beginnings?: readonly string[];
  /**
   * Where a lost connection could leave a statement to run by itself: refuses every change to these tables outside of a
   * transaction that `SqlEngine.begin` began, an entry that the head does not cover, and a head without its entries.
   */
  guards?(tables: readonly string[]): string[];
  /** The same for one table more, after `guards`. */
  guard?(table: string): string;
  /** For a repair: lets rows of append-only tables be deleted inside the transaction that says so. Absent: no repair. */
  suspendAppendOnly?(tables: readonly string[]): { begin: string[]; end: string[] };
  /** Whether an index of a table holds its integer primary key without being told to, behind its columns. */
  readonly indexesHoldKey: boolean;
  /**
   * Whether the planner chooses by how many rows it expects. Where a part of a column and the whole of it are compared, it
   * expects far too few, and sorts all of a key's actions for one page.
   */
  readonly expectsRows: boolean;
  /**
   * How `actions` and `approvals` hold texts that have a form (forms.ts), where one process has the store: their actions
   * have kinds (kinds.ts) as well. Null: as text, and without kinds.
   */
  readonly packed: PackedSql | null;
  /** A column of actions that is to be compared without an index. */
  unindexed(column: string): RawBuilder<never>;
  /** Drops an index if it is there, and rather fails than let decisions wait behind a long read. */
  dropIndex(name: string): string[];
  bytesOf(hex: string): RawBuilder<unknown>;
  /**
   * What stands where an entry's bytes were that are in a bundle. Null where several processes share the store: one of an
   * older version then fails, and does not take nothing for the entry.
   */
  readonly noBytes: Uint8Array | null;
  /** A parameter, a JSON array of objects, as a table named "given" with these members as columns. */
  given(json: RawBuilder<unknown>, columns: Readonly<Record<string, "text" | "integer">>): RawBuilder<unknown>;
  /** One statement that inserts several rows, whose values are as its names. Absent: they go in one by one. */
  insertRows?(insert: Insert, rows: readonly (readonly SqlValue[])[]): { sql: string; values: SqlValue[] };
  /** `clustered`: rows are small and only ever found by primary key. */
  finish(table: CreateTableBuilder<string, string>, clustered?: boolean): Compilable;
  /** Refuses UPDATE and DELETE, and an INSERT that would replace a row: with an error, or by keeping the old row. */
  appendOnly(table: string, key: readonly string[], onDuplicate: "refuse" | "keep"): string[];
  /**
   * After `appendOnly` of "entries" and "entry_bundles". Lets an entry's bytes become `noBytes` where a bundle stands at
   * its tile, the head covers the tile, its type is not among those that keep theirs, and all these columns stay as they
   * are; refuses every other UPDATE as before. Of a decision those that are `said` may become null then.
   */
  mayEmptyEntries(columns: readonly string[], keeping: readonly string[], said?: readonly string[]): string[];
  /** Beside the first `mayEmptyEntries`. Lets a bundle in that stands right behind the last, of a tile that the head covers. */
  bundlesInLine(): string[];
  /** For the table's one row: refuses DELETE, a second row, and an UPDATE that lowers the column. */
  neverShrinks(table: string, column: string): string[];
}

/** What a step of the schema is made with. */
export interface SchemaKit extends SqlDialect {
  /** Whether several processes may have the store open: what those of the version before read must stay for a while. */
  readonly shared: boolean;
}
