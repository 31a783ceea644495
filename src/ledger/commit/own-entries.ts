/**
 * The ledger as a job reads it: what the head covers, and the batch's own entries, which are stored at its end. What
 * stands in the table behind the head was put there by nobody who holds the ledger's lock, and proves nothing.
 */
import type { EntryRow, FollowedType, LedgerReads } from "../../contract/storage.ts";
import { equalBytes } from "../../domain/hash.ts";

// One that is forgotten does not compile. Tiles are full at the end only.
type Reads = Omit<LedgerReads, "head" | "checkpoint" | "tile" | "tileRoots">;

/**
 * @param size that the stored head has
 * @param rows the batch's own, which grow
 * @param ofAction what is stored of an action
 */
export function withOwn(
  tx: Reads,
  size: number,
  rows: readonly EntryRow[],
  ofAction: Reads["entriesOfAction"] = (id) => tx.entriesOfAction(id),
): Reads {
  const own = (of: (row: EntryRow) => boolean): EntryRow[] => rows.filter(of);
  const covered = (stored: readonly EntryRow[]): EntryRow[] => stored.filter(({ seq }) => seq < size);
  return {
    entries: async (from, to) => [
      ...(await tx.entries(from, Math.max(from, Math.min(to, size)))),
      ...own(({ seq }) => seq >= from && seq < to),
    ],
    entriesOfAction: async (id) => [...covered(await ofAction(id)), ...own(({ action_id }) => action_id === id)],
    entriesOfType: async (of: FollowedType, from, limit) =>
      [
        ...covered(await tx.entriesOfType(of, from, limit)),
        ...own(({ type, seq }) => type === of && seq >= from),
      ].slice(0, limit),
    async entryByHash(hash) {
      const stored = await tx.entryByHash(hash);
      if (stored !== null && stored.seq < size) return stored;
      return own(({ leaf_hash }) => equalBytes(leaf_hash, hash))[0] ?? null;
    },
    leafHashes: async (from, to) => [
      ...(await tx.leafHashes(from, Math.max(from, Math.min(to, size)))),
      ...own(({ seq }) => seq >= from && seq < to).map(({ leaf_hash }) => leaf_hash),
    ],
  };
}
