/** A store's tables as rows, for `assent copy`. */
import type { LedgerHead } from "./ledger.ts";

/** Tables of a store, in the order in which they are copied. Excludes data that can be rebuilt (sums, leases). */
export const COPIED_TABLES = [
  "entries",
  "tiles",
  "policies",
  "policy_versions",
  "policy_sets",
  "api_keys",
  "agents",
  "actions",
  "approvals",
  "idempotency",
  "deliveries",
  "limit_uses",
  "past_actions",
  "documents",
  "document_counter",
  "meta",
] as const;
export type CopiedTable = (typeof COPIED_TABLES)[number];
/** A stored row. Its content is private to the storage plugin. */
export type CopiedRow = Readonly<Record<string, string | number | Uint8Array | null>>;

/** A row that a repair removes. */
export interface RemovedRow {
  table: CopiedTable;
  row: CopiedRow;
}

/** Copies a complete store into an empty store, table by table. The head is written last and makes the copy valid. */
export interface StorageCopying {
  /** Reads the rows that follow `after`, in ascending order of the primary key; null starts at the first row. */
  read(table: CopiedTable, after: CopiedRow | null, limit: number): Promise<CopiedRow[]>;
  /** Returns the row with the largest primary key. */
  last(table: CopiedTable): Promise<CopiedRow | null>;
  count(table: CopiedTable): Promise<number>;
  /**
   * Writes rows in one durable transaction. Replaces existing rows in mutable tables, and rejects if a row already
   * exists in an immutable table.
   */
  write(table: CopiedTable, rows: readonly CopiedRow[]): Promise<void>;
  /** Writes the head and checkpoint of the source. */
  finish(head: LedgerHead, checkpoint: { size: number; note: string } | null): Promise<void>;
}
