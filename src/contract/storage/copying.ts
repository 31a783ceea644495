/** A store's tables as rows, for `assent copy`. */
import type { LedgerHead } from "./ledger.ts";

/** Tables of a store, in an order in which they can be filled. What can be made again (sums, leases) is not among them. */
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
  "documents",
  "document_counter",
  "meta",
] as const;
export type CopiedTable = (typeof COPIED_TABLES)[number];
/** A row as it is stored. Only stores look inside. */
export type CopiedRow = Readonly<Record<string, string | number | Uint8Array | null>>;

/** A row that a repair takes out. */
export interface RemovedRow {
  table: CopiedTable;
  row: CopiedRow;
}

/** A whole store, table by table, into an empty one. The head comes last: until then the copy is no ledger. */
export interface StorageCopying {
  /** Rows behind `after` by primary key, ascending; from the first one when it is null. */
  read(table: CopiedTable, after: CopiedRow | null, limit: number): Promise<CopiedRow[]>;
  /** The last row by primary key. */
  last(table: CopiedTable): Promise<CopiedRow | null>;
  count(table: CopiedTable): Promise<number>;
  /** One durable transaction. A row of a known key is replaced where rows may change, and refused where they may not. */
  write(table: CopiedTable, rows: readonly CopiedRow[]): Promise<void>;
  /** Sets the head and the checkpoint as they were read from the source. */
  finish(head: LedgerHead, checkpoint: { size: number; note: string } | null): Promise<void>;
}
