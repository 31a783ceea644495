/** C2SP tlog-tiles, which stores the tree in tiles of 256 hashes, and the entries in bundles of 256. */
import { concatBytes } from "./hash.ts";
import { hashNode } from "./merkle.ts";

export const TILE_WIDTH = 256;

/** Highest tile level in the specification. */
const MAX_LEVEL = 63;

interface TilePosition {
  level: number;
  index: number;
}

/** Returns the tiles that become full when the tree grows from `oldSize` to `newSize`, lower levels first. */
export function tilesBetween(oldSize: number, newSize: number): TilePosition[] {
  const tiles: TilePosition[] = [];
  let before = oldSize;
  let after = newSize;
  for (let level = 0; after >= TILE_WIDTH; level++) {
    before = Math.floor(before / TILE_WIDTH);
    after = Math.floor(after / TILE_WIDTH);
    for (let index = before; index < after; index++) tiles.push({ level, index });
  }
  return tiles;
}

/** Returns the root of the 256 hashes of a full tile, which is a hash in the level above. `hashes` has 8,192 bytes. */
export function rootOfTile(hashes: Uint8Array): Uint8Array {
  if (hashes.length !== TILE_WIDTH * 32)
    throw new RangeError(`a full tile has ${TILE_WIDTH * 32} bytes, this one ${hashes.length}`);
  let row: Uint8Array[] = Array.from({ length: TILE_WIDTH }, (_, i) => hashes.subarray(i * 32, i * 32 + 32));
  while (row.length > 1) {
    const above: Uint8Array[] = [];
    for (let i = 0; i < row.length; i += 2) above.push(hashNode(row[i] as Uint8Array, row[i + 1] as Uint8Array));
    row = above;
  }
  return row[0] as Uint8Array;
}

/** Returns a path such as `x001/x234/067`: groups of three digits, with the prefix x on all except the last. */
function indexPath(index: number): string {
  const digits = String(index);
  const padded = digits.padStart(Math.ceil(digits.length / 3) * 3, "0");
  const groups = padded.match(/.{3}/g) as string[];
  return groups.map((group, i) => (i < groups.length - 1 ? `x${group}` : group)).join("/");
}

/**
 * Returns the path under the log's prefix, without a leading slash. Throws RangeError for an invalid tile.
 * @param level the level from 0 to 63, or "entries" for a bundle
 * @param width the number of hashes or entries from 1 to 256; 256 for a full tile
 */
export function tilePath(level: number | "entries", index: number, width: number = TILE_WIDTH): string {
  if (level !== "entries" && !(Number.isInteger(level) && level >= 0 && level <= MAX_LEVEL))
    throw new RangeError(`a tile's level is between 0 and ${MAX_LEVEL}, not ${level}`);
  if (!Number.isSafeInteger(index) || index < 0) throw new RangeError(`${index} is not the index of a tile`);
  if (!Number.isInteger(width) || width < 1 || width > TILE_WIDTH)
    throw new RangeError(`a tile has 1 to ${TILE_WIDTH} hashes, not ${width}`);
  return `tile/${level}/${indexPath(index)}${width === TILE_WIDTH ? "" : `.p/${width}`}`;
}

/** Parses a tile path. Returns null unless `tilePath` would return exactly this string. */
export function parseTilePath(path: string): { level: number | "entries"; index: number; width: number } | null {
  const match = /^tile\/(entries|\d{1,2})\/((?:x\d{3}\/){0,5}\d{3})(?:\.p\/(\d{1,3}))?$/.exec(path);
  if (match === null) return null;
  const level = match[1] === "entries" ? "entries" : Number(match[1]);
  const index = Number((match[2] as string).replaceAll(/[x/]/g, ""));
  const width = match[3] === undefined ? TILE_WIDTH : Number(match[3]);
  if (!Number.isSafeInteger(index) || width < 1 || width > TILE_WIDTH || (level !== "entries" && level > MAX_LEVEL))
    return null;
  return tilePath(level, index, width) === path ? { level, index, width } : null;
}

/**
 * Encodes each entry as a big-endian uint16 length and its bytes. Throws RangeError for an entry larger than 65,535
 * bytes, and for more than 256 entries.
 * @example
 * encodeEntryBundle([Uint8Array.of(7, 8)]); // bytes 0, 2, 7, 8
 */
export function encodeEntryBundle(entries: readonly Uint8Array[]): Uint8Array {
  if (entries.length > TILE_WIDTH)
    throw new RangeError(`a bundle has at most ${TILE_WIDTH} entries, not ${entries.length}`);
  const parts: Uint8Array[] = [];
  for (const entry of entries) {
    if (entry.length > 0xffff) throw new RangeError(`an entry of ${entry.length} bytes is too large for a bundle`);
    parts.push(Uint8Array.of(Math.floor(entry.length / 256), entry.length % 256), entry);
  }
  return concatBytes(...parts);
}

/**
 * Decodes a bundle. Throws RangeError unless it consists of at most 256 complete entries. The returned entries share
 * the memory of `bytes`.
 * @example
 * decodeEntryBundle(Uint8Array.of(0, 2, 7, 8)); // [Uint8Array.of(7, 8)]
 */
export function decodeEntryBundle(bytes: Uint8Array): Uint8Array[] {
  const entries: Uint8Array[] = [];
  let at = 0;
  while (at < bytes.length) {
    const length = (bytes[at] as number) * 256 + (bytes[at + 1] ?? NaN);
    if (!(at + 2 + length <= bytes.length)) throw new RangeError("the bundle is truncated");
    if (entries.length === TILE_WIDTH) throw new RangeError(`a bundle has at most ${TILE_WIDTH} entries`);
    entries.push(bytes.subarray(at + 2, at + 2 + length));
    at += 2 + length;
  }
  return entries;
}
