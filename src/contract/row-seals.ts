/**
 * Seals of rows. A seal is a MAC over the members of a row, under a key that is derived from the service's secret.
 * Someone who can write to the database, but does not have the secret, can therefore neither create nor change such a
 * row. A seal does not prevent that a row is removed, or replaced by one of its earlier versions.
 */
import type { CopiedTable } from "./storage/copying.ts";
import type { LedgerHead } from "./storage/ledger.ts";

/**
 * The members that the seals of each table cover. These tables contain rows that authenticate, decide or address
 * something, and that no ledger entry contains. The other members are numbers that the store assigns, and the progress
 * of deliveries.
 */
export const SEALED_MEMBERS = {
  documents: ["plugin", "key", "value"],
  deliveries: [
    "id",
    "destination",
    "notifier",
    "recipient",
    "kind",
    "seq",
    "action_id",
    "person",
    "channel",
    "reference",
    "created_at",
  ],
  idempotency: ["key_id", "route", "idempotency_key", "body_hash", "resource_id", "created_at"],
} as const satisfies Partial<Record<CopiedTable, readonly string[]>>;

export type SealedTable = keyof typeof SEALED_MEMBERS;
export const SEALED_TABLES = Object.keys(SEALED_MEMBERS) as SealedTable[];

/** The members of a row that its seal covers. */
type SealedRow<Table extends SealedTable> = Readonly<
  Record<(typeof SEALED_MEMBERS)[Table][number], string | number | null>
>;

/** Returns a name that identifies a row for the operator, without its content. */
export function describeSealedRow<Table extends SealedTable>(table: Table, row: SealedRow<Table>): string {
  const columns = { documents: ["plugin", "key"], deliveries: ["id"], idempotency: ["route", "idempotency_key"] }[
    table
  ];
  const name = columns.map((column) => row[column as keyof typeof row]).join(" ");
  return `the row "${name}" of ${table}`;
}

export interface RowSeals {
  /** Returns the seal of a row, in lowercase hex. Ignores members that the seal does not cover. */
  seal<Table extends SealedTable>(table: Table, row: SealedRow<Table>): string;
  /** Returns false, and logs an error, if someone changed the row, or if it was sealed with another secret. */
  matches<Table extends SealedTable>(table: Table, row: SealedRow<Table> & { seal: string }): boolean;
  /** Throws STORE_ALTERED, and logs an error, unless the row matches its seal. */
  assertMatches<Table extends SealedTable>(table: Table, row: SealedRow<Table> & { seal: string }): void;
  /** Returns the seal of a head, in lowercase hex. */
  sealHead(head: Omit<LedgerHead, "seal">): string;
  /**
   * Returns true if the service wrote the head, or if it is the head of an empty ledger. Does not compare the right edge
   * with the root.
   */
  isOwnHead(head: LedgerHead): boolean;
}
