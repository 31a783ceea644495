import { StorageError } from "./storage-error.ts";
import type { EntryRow } from "./ledger.ts";

/**
 * Returns the entries unchanged. Throws StorageError "corrupt" unless they start at `from` and have no gap. With `to`,
 * they must include every entry before `to`.
 * @example
 * const rows = assertContiguous(await readRows(from, to), from, to);
 */
export function assertContiguous<Rows extends readonly EntryRow[]>(
  rows: Rows,
  from: number,
  to = from + rows.length,
): Rows {
  const gap = rows.findIndex(({ seq }, i) => seq !== from + i);
  const missing = gap >= 0 ? from + gap : from + rows.length;
  if (gap >= 0 || missing < to)
    throw new StorageError("corrupt", `the store lacks entry ${missing} of the ledger; run assent audit`);
  return rows;
}
