/** The batch's entries are stored at its end: a job reads those of the jobs before it here. */
import type { EntryRow, FollowedType, LedgerReads } from "../contract/storage.ts";
import { equalBytes } from "../domain/hash.ts";

// One that is forgotten does not compile. Tiles are full at the end only.
type Reads = Omit<LedgerReads, "head" | "checkpoint" | "tile" | "tileRoots">;

/** @param rows the batch's own, which grow */
export function withOwn(tx: Reads, rows: readonly EntryRow[]): Reads {
  const own = (of: (row: EntryRow) => boolean): EntryRow[] => rows.filter(of);
  return {
    entries: async (from, to) => [...(await tx.entries(from, to)), ...own(({ seq }) => seq >= from && seq < to)],
    entriesOfAction: async (id) => [...(await tx.entriesOfAction(id)), ...own(({ action_id }) => action_id === id)],
    entriesOfType: async (of: FollowedType, from, limit) =>
      [...(await tx.entriesOfType(of, from, limit)), ...own(({ type, seq }) => type === of && seq >= from)].slice(
        0,
        limit,
      ),
    entryByHash: async (hash) =>
      (await tx.entryByHash(hash)) ?? own(({ leaf_hash }) => equalBytes(leaf_hash, hash))[0] ?? null,
    leafHashes: async (from, to) => [
      ...(await tx.leafHashes(from, to)),
      ...own(({ seq }) => seq >= from && seq < to).map(({ leaf_hash }) => leaf_hash),
    ],
  };
}
