/**
 * Reads the ledger as a job sees it: the entries that the stored head covers, and the entries of the current batch,
 * which are stored at its end. Ignores rows beyond the head, because they were not written under the ledger's lock.
 */
import type { EntryRow, LedgerReads } from "../../contract/storage.ts";
import { equalBytes } from "../../domain/hash.ts";

// The reads that include the batch's entries. The type makes the compiler report a missing read. Excludes tiles,
// because they are complete only at the end of a batch.
export type BatchReads = Omit<LedgerReads, "head" | "checkpoint" | "tile" | "tileRoots">;

/**
 * Returns reads that include the batch's entries.
 * @param size the size of the stored head
 * @param rows the entries of the batch, a list that grows while the batch runs
 * @param ofAction a function that reads the stored entries of an action
 */
export function createBatchReads(
  tx: BatchReads,
  size: number,
  rows: readonly EntryRow[],
  ofAction: BatchReads["entriesOfAction"] = (id) => tx.entriesOfAction(id),
): BatchReads {
  const batchRows = (of: (row: EntryRow) => boolean): EntryRow[] => rows.filter(of);
  const covered = (stored: readonly EntryRow[]): EntryRow[] => stored.filter(({ seq }) => seq < size);
  return {
    entries: async (from, to) => [
      ...(await tx.entries(from, Math.max(from, Math.min(to, size)))),
      ...batchRows(({ seq }) => seq >= from && seq < to),
    ],
    entriesOfAction: async (id) => [...covered(await ofAction(id)), ...batchRows(({ action_id }) => action_id === id)],
    followedEntries: async (from, limit) =>
      [
        ...covered(await tx.followedEntries(from, limit)),
        ...batchRows(({ followed, seq }) => followed && seq >= from),
      ].slice(0, limit),
    async entryByHash(hash) {
      const stored = await tx.entryByHash(hash);
      if (stored !== null && stored.seq < size) return stored;
      return batchRows(({ leaf_hash }) => equalBytes(leaf_hash, hash))[0] ?? null;
    },
    leafHashes: async (from, to) => [
      ...(await tx.leafHashes(from, Math.max(from, Math.min(to, size)))),
      ...batchRows(({ seq }) => seq >= from && seq < to).map(({ leaf_hash }) => leaf_hash),
    ],
  };
}
