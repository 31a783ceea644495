/** Finds an entry by its time. */
import type { StorageReader } from "../contract/storage.ts";

/** Returns the sequence number of the first entry at or after a time. Entries are ordered by time. */
export async function findFirstEntry(
  reader: Pick<StorageReader, "entries">,
  at: number,
  size: number,
): Promise<number> {
  let [low, high] = [0, size];
  while (low < high) {
    const middle = (low + high) >> 1;
    const [row] = await reader.entries(middle, middle + 1);
    if (row === undefined || row.created_at >= at) high = middle;
    else low = middle + 1;
  }
  return low;
}
