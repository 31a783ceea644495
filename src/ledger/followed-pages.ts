/** Reads the entries that every process follows, for example those of users and keys. */
import type { EntryRow, StorageReader } from "../contract/storage.ts";

const PAGE_SIZE = 500;

/** Yields pages of the followed entries with `seq >= from`, ascending. */
export async function* readFollowedPages(
  reader: Pick<StorageReader, "followedEntries">,
  from = 0,
): AsyncIterable<EntryRow[]> {
  for (let next = from; ;) {
    const rows = await reader.followedEntries(next, PAGE_SIZE);
    yield rows;
    const last = rows.at(-1);
    if (last === undefined || rows.length < PAGE_SIZE) return;
    next = last.seq + 1;
  }
}
