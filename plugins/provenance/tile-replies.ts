/** Serves the tree as static resources (C2SP tlog-tiles), for monitors and witnesses. */
import { concatBytes, type CoreHost, encodeEntryBundle, parseTilePath, TILE_WIDTH } from "../../src/core.ts";
import { type Credential, Refusal, type Reply } from "../../src/plugin.ts";
import { StorageError, assertContiguous } from "../../src/storage/index.ts";

/**
 * Returns the headers of a tile. Tiles are immutable, but shared caches must not store tiles that need a credential.
 */
const cacheHeaders = (open: boolean): Record<string, string> => ({
  "Content-Type": "application/octet-stream",
  "Cache-Control": `${open ? "public" : "private"}, max-age=31536000, immutable`,
});

function tileNotFoundRefusal(path: string): Refusal {
  return new Refusal(
    "TILE_NOT_FOUND",
    `the log has no ${path.slice(0, 100)}: it is not the path of a tile, or the tile is wider than the checkpoint's size allows`,
  );
}

/** Returns a tile of hashes. Throws TILE_NOT_FOUND if the signed checkpoint does not cover it. */
export async function replyWithHashTile(
  host: CoreHost,
  at: { level: string; tile: string },
  open: boolean,
): Promise<Reply> {
  const path = `tile/${at.level}/${at.tile}`;
  const tile = parseTilePath(path);
  if (tile === null || tile.level === "entries") throw tileNotFoundRefusal(path);
  const { level, index, width } = tile;
  const { size } = await host.ledger.checkpoint();
  const from = index * TILE_WIDTH;
  // No valid size has 63 levels. For large levels, the power overflows to a number that is larger than any size.
  if (from + width > Math.floor(size / TILE_WIDTH ** level)) throw tileNotFoundRefusal(path);
  if (width === TILE_WIDTH) {
    const row = await host.storage.tile(level, index);
    if (row === null) throw tileNotFoundRefusal(path);
    return { status: 200, bytes: row.hashes, headers: cacheHeaders(open) };
  }
  const hashes =
    level === 0
      ? await host.storage.leafHashes(from, from + width)
      : await host.storage.tileRoots(level - 1, from, from + width);
  if (hashes.length !== width)
    throw new StorageError("corrupt", `the store lacks hashes of the tile ${path}; run assent audit`);
  return { status: 200, bytes: concatBytes(...hashes), headers: cacheHeaders(open) };
}

/**
 * Returns a bundle of entries. Only keys that see all actions may read it, because entries identify agents, tools and
 * people.
 */
export async function replyWithEntryBundle(host: CoreHost, tile: string, { visibility }: Credential): Promise<Reply> {
  const path = `tile/entries/${tile}`;
  const at = parseTilePath(path);
  if (!("all" in visibility)) {
    throw new Refusal(
      "INSUFFICIENT_SCOPE",
      "a bundle contains entries that this key may not see; read its own entries by hash, or use a key with actions:read that is not bound to an agent",
    );
  }
  if (at === null) throw tileNotFoundRefusal(path);
  const { size } = await host.ledger.checkpoint();
  const from = at.index * TILE_WIDTH;
  const to = from + at.width;
  if (to > size) throw tileNotFoundRefusal(path);
  const rows = assertContiguous(await host.storage.entries(from, to), from, to);
  return { status: 200, bytes: encodeEntryBundle(rows.map((row) => row.bytes)), headers: cacheHeaders(false) };
}
