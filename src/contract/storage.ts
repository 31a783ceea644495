/**
 * The storage contract: the reads and writes that the ledger and the resources need, and their guarantees. Rows have
 * snake_case names because they mirror ledger entries and API documents. Times are integer milliseconds since the
 * epoch. Digests in rows are lowercase hex; digests of the tree are raw 32-byte arrays. Strings hold any well-formed
 * Unicode, including U+0000, and compare exactly. Values that cannot be returned unchanged (a lone surrogate, an
 * integer that a double cannot represent) are rejected. Failures: a method that fails rejects with `StorageError`. If
 * `write` rejects, the caller does NOT know whether the transaction was committed. It must read the head again before
 * it relies on any earlier read. The folder `storage/` has one file for each subject; this file exports all of them.
 */
export * from "./storage/actions.ts";
export type * from "./storage/analytics.ts";
export * from "./storage/copying.ts";
export * from "./storage/deliveries.ts";
export type * from "./storage/directory.ts";
export type * from "./storage/documents.ts";
export * from "./storage/storage-error.ts";
export * from "./storage/ledger.ts";
export type * from "./storage/limits.ts";
export * from "./storage/methods.ts";
export * from "./storage/past-actions.ts";
export type * from "./storage/policies.ts";
export * from "./storage/searched-text.ts";
export type * from "./storage/store.ts";
export type * from "./storage/transaction.ts";
export * from "./storage/assert-contiguous.ts";
export type { StoredVisibility } from "../domain/visibility.ts";
