/**
 * Computes proofs and roots from stored hashes. Keeps at most one tile in memory, regardless of the size of the ledger.
 */
import { StorageError, type StorageReader } from "../contract/storage.ts";
import { consistencyProof, hashNode, inclusionProof, computeRoot } from "../domain/merkle.ts";
import { TILE_WIDTH } from "../domain/tiles.ts";

const TILE_LEVELS = 8;

/** The stored hashes of the ledger's tree. */
type HashReader = Pick<StorageReader, "leafHashes" | "tile" | "tileRoots">;

export interface ProofReader {
  inclusion(index: number, size: number): Promise<Uint8Array[]>;
  consistency(first: number, second: number): Promise<Uint8Array[]>;
  rootAt(size: number): Promise<Uint8Array>;
  /** Returns the root of the perfect subtree of 2^level leaves at position `index`. */
  node(level: number, index: number): Promise<Uint8Array>;
}

export function createProofReader(reader: HashReader): ProofReader {
  const node = (level: number, index: number): Promise<Uint8Array> => readNode(reader, level, index);
  return {
    node,
    inclusion: (index, size) => inclusionProof(index, size, node),
    consistency: (first, second) => consistencyProof(first, second, node),
    rootAt: (size) => computeRoot(size, node),
  };
}

async function readNode(reader: HashReader, level: number, index: number): Promise<Uint8Array> {
  const tileLevel = Math.floor(level / TILE_LEVELS);
  const width = 2 ** (level % TILE_LEVELS);
  const from = index * width;
  let hashes = await hashesOf(reader, tileLevel, from, width);
  while (hashes.length > 1) {
    const above: Uint8Array[] = [];
    for (let i = 0; i < hashes.length; i += 2)
      above.push(hashNode(hashes[i] as Uint8Array, hashes[i + 1] as Uint8Array));
    hashes = above;
  }
  return hashes[0] as Uint8Array;
}

async function hashesOf(reader: HashReader, tileLevel: number, from: number, width: number): Promise<Uint8Array[]> {
  if (width > 1) {
    const tile = await reader.tile(tileLevel, Math.floor(from / TILE_WIDTH));
    if (tile !== null) {
      const start = from % TILE_WIDTH;
      return Array.from({ length: width }, (_, i) => tile.hashes.subarray((start + i) * 32, (start + i + 1) * 32));
    }
  }
  const hashes =
    tileLevel === 0
      ? await reader.leafHashes(from, from + width)
      : await reader.tileRoots(tileLevel - 1, from, from + width);
  if (hashes.length !== width) {
    throw new StorageError(
      "corrupt",
      `the store lacks hashes of tile level ${tileLevel} from ${from}: ${hashes.length} of ${width} are there`,
    );
  }
  return hashes;
}
