/** Moves the bytes of old entries to bundles, in short transactions between decisions. */
import { equalBytes, TILE_WIDTH, StorageError } from "../../src/storage/index.ts";
import { encodeBundle } from "./bundles.ts";
import type { ReadStatements } from "./queries.ts";
import { readRows, toPlainRow, type SqlExecutor, type SqlReader } from "./statement.ts";
import type { Tables } from "./table-schema.ts";
import type { WriteStatements } from "./writes.ts";

const NO_BYTES = new Uint8Array(0);
/** Number of bundles that the audit reads at once. */
const PAGE_SIZE = 16;

interface BundlerOptions {
  reads: ReadStatements;
  writes: WriteStatements;
  reader: SqlReader;
  /** Runs the work in a transaction that does not write the ledger's head. */
  aside(work: (db: SqlExecutor) => Promise<void>): Promise<void>;
  /** Number of the newest entries that keep their bytes in their rows. */
  unbundledEntries: number;
}

/** An encoded bundle of the 256 entries from `start`. */
interface EncodedBundle {
  start: number;
  bytes: Uint8Array;
  leafHashes: Uint8Array[];
  /** Number of entries whose bytes also stay in their rows. */
  unbundled: number;
}

/** Returns a function that creates up to `most` due bundles in one transaction. It resolves to true if more are due. */
export function createBundler({
  reads,
  writes,
  reader,
  aside,
  unbundledEntries,
}: BundlerOptions): (most: number) => Promise<boolean> {
  async function bundledEntries(): Promise<number> {
    const [row] = await reader.all(reads.lastBundle, {});
    const last = row === undefined ? null : toPlainRow<{ start: number | null }>(row).start;
    return last === null ? 0 : last + TILE_WIDTH;
  }

  async function encodeAt(start: number): Promise<EncodedBundle> {
    const rows = await readRows<Tables["entries"]>(reader, reads.entries, { from: start, to: start + TILE_WIDTH });
    return {
      start,
      bytes: await encodeBundle(start, rows),
      leafHashes: rows.map(({ leaf_hash }) => leaf_hash),
      unbundled: rows.filter(({ followed }) => followed === 1).length,
    };
  }

  /** Encodes bundles until one fails. Rejects only if the first bundle fails. */
  async function encodeFrom(start: number, count: number): Promise<EncodedBundle[]> {
    const bundles = [await encodeAt(start)];
    try {
      while (bundles.length < count) bundles.push(await encodeAt(start + bundles.length * TILE_WIDTH));
    } catch {
      // The next call starts with this bundle, and reports the error.
    }
    return bundles;
  }

  async function store(db: SqlExecutor, { start, bytes, leafHashes, unbundled }: EncodedBundle): Promise<void> {
    const to = start + TILE_WIDTH;
    // The rows were read outside this transaction, so compare them again.
    const hashes = (await db.all(reads.leafHashes, { from: start, to })).map((row) => row["leaf_hash"] as Uint8Array);
    if (hashes.length !== TILE_WIDTH || !leafHashes.every((hash, i) => equalBytes(hash, hashes[i] as Uint8Array)))
      db.fail(changedEntriesError(start, to));
    await db.run(writes.insertBundle, { start, bytes });
    const emptied = await db.run(writes.emptyEntries, { none: NO_BYTES, from: start, to });
    if (emptied !== TILE_WIDTH - unbundled) db.fail(changedEntriesError(start, to));
  }

  return async (most) => {
    const size = Number((await reader.all(reads.head, {}))[0]?.["size"] ?? 0);
    const start = await bundledEntries();
    const due = Math.floor((size - unbundledEntries - start) / TILE_WIDTH);
    if (due < 1) return false;
    let made = 1;
    try {
      const bundles = await encodeFrom(start, Math.min(most, due));
      made = bundles.length;
      await aside(async (db) => {
        for (const bundle of bundles) await store(db, bundle);
      });
    } catch (error) {
      // Ignore the error if another process has created the same bundle.
      if ((await bundledEntries().catch(() => start)) === start) throw error;
    }
    return due > made;
  };
}

function changedEntriesError(from: number, to: number): StorageError {
  return new StorageError(
    "corrupt",
    `the entries ${from} to ${to - 1} changed while they were moved into a bundle; run assent audit`,
  );
}

/** Returns faults of bundles that reads of entries cannot detect: bundles without a complete tile of entries. */
export async function findBundleFaults(reads: ReadStatements, db: SqlReader): Promise<string[]> {
  const faults: string[] = [];
  for (let after = -1; ;) {
    const rows: { start: number; n: number }[] = await readRows(db, reads.bundledEntries, { after, limit: PAGE_SIZE });
    for (const { start, n } of rows)
      if (start % TILE_WIDTH !== 0 || n !== TILE_WIDTH)
        faults.push(`there is a bundle at ${start}, but only ${n} of its ${TILE_WIDTH} entries are stored correctly`);
    if (rows.length < PAGE_SIZE) return faults;
    after = rows.at(-1)?.start ?? after;
  }
}
