import { StorageError } from "./errors.ts";
import type { EntryRow } from "./ledger.ts";

/**
 * The entries as they were read. Throws StorageError "corrupt" unless they are `from` and those behind it, one after
 * another, and all up to `to` where it is given: what a store lacks must not be passed over in silence.
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
