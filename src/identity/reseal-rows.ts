import { SEALED_TABLES, type RowSeals, type SealedTable } from "../contract/row-seals.ts";
import type { CopiedRow, Storage, StorageCopying } from "../contract/storage.ts";
import { VaultError } from "./key-files.ts";

const PAGE_SIZE = 500;

/**
 * Seals all rows and the head again, after the operator has accepted another secret. Cannot verify the old seals,
 * because that needs the earlier secret. Throws VaultError if the storage does not support this.
 */
export async function resealRows(
  { copying, name, write }: Pick<Storage, "copying" | "name" | "write">,
  seals: RowSeals,
): Promise<void> {
  if (copying === undefined)
    throw new VaultError(`the storage ${name} cannot change to another secret; start with the earlier secret`);
  for (const table of SEALED_TABLES) await resealTable(copying, table, seals);
  await write(async (tx) => {
    const head = await tx.head();
    if (head.size > 0) await tx.append([], [], { ...head, seal: seals.sealHead(head) });
  });
}

async function resealTable(copying: StorageCopying, table: SealedTable, seals: RowSeals): Promise<void> {
  for (let after: CopiedRow | null = null; ;) {
    const rows: CopiedRow[] = await copying.read(table, after, PAGE_SIZE);
    after = rows.at(-1) ?? null;
    if (after === null) return;
    await copying.write(
      table,
      rows.map((row) => ({ ...row, seal: seals.seal(table, row as never) })),
    );
  }
}
