/** Computes the tiles that a batch completes, from the stored hashes and the hashes that it appends. */
import { StorageError, type EntryRow, type StorageReader, type TileRow } from "../../contract/storage.ts";
import { rootOfTile, tilesBetween, TILE_WIDTH } from "../../domain/tiles.ts";

/**
 * Returns the tiles that the batch completes. A tile has 256 hashes (C2SP tlog-tiles), and its root is a hash in the
 * level above.
 */
export async function computeCompletedTiles(
  tx: StorageReader,
  oldSize: number,
  rows: readonly EntryRow[],
): Promise<TileRow[]> {
  const done: TileRow[] = [];
  const newRoots = new Map<string, Uint8Array>();
  for (const { level, index } of tilesBetween(oldSize, oldSize + rows.length)) {
    const from = index * TILE_WIDTH;
    const hashes =
      level === 0 ? await readLeafHashes(tx, from, oldSize, rows) : await readRootHashes(tx, level - 1, from, newRoots);
    const joined = new Uint8Array(TILE_WIDTH * 32);
    hashes.forEach((hash, i) => joined.set(hash, i * 32));
    const root = rootOfTile(joined);
    newRoots.set(`${level}/${index}`, root);
    done.push({ level, index, hashes: joined, root });
  }
  return done;
}

async function readLeafHashes(
  tx: StorageReader,
  from: number,
  oldSize: number,
  rows: readonly EntryRow[],
): Promise<Uint8Array[]> {
  const to = from + TILE_WIDTH;
  const stored = from < oldSize ? await tx.leafHashes(from, Math.min(to, oldSize)) : [];
  const start = Math.max(from, oldSize) - oldSize;
  return assertFullTile([...stored, ...rows.slice(start, to - oldSize).map((row) => row.leaf_hash)]);
}

async function readRootHashes(
  tx: StorageReader,
  level: number,
  from: number,
  rootsHere: ReadonlyMap<string, Uint8Array>,
): Promise<Uint8Array[]> {
  const to = from + TILE_WIDTH;
  const roots: Uint8Array[] = [];
  let missing = from;
  while (missing < to && !rootsHere.has(`${level}/${missing}`)) missing++;
  roots.push(...(missing > from ? await tx.tileRoots(level, from, missing) : []));
  for (let i = missing; i < to; i++) {
    const root = rootsHere.get(`${level}/${i}`);
    if (root !== undefined) roots.push(root);
  }
  return assertFullTile(roots);
}

function assertFullTile(hashes: Uint8Array[]): Uint8Array[] {
  if (hashes.length !== TILE_WIDTH) {
    throw new StorageError("corrupt", `the store returned ${hashes.length} of the ${TILE_WIDTH} hashes of a tile`);
  }
  return hashes;
}
