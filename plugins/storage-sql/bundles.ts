/**
 * Stores the bytes of old entries in bundles of 256. If an entry's row has no bytes, they are in the bundle of its tile
 * (C2SP tlog-tiles layout, gzip). Every read compares bytes from a bundle with the entry's leaf hash, so a lost or
 * damaged bundle cannot change an entry unnoticed.
 *
 * Measured with 100,003 decisions on SQLite: an entry's row and its share of a bundle use 272 bytes instead of 1,172.
 */
import { gunzipSync, gzip } from "node:zlib";
import { sql, type Kysely } from "kysely";
import {
  equalBytes,
  hashLeaf,
  encodeEntryBundle,
  TILE_WIDTH,
  MAX_ENTRY_BYTES,
  decodeEntryBundle,
  StorageError,
} from "../../src/storage/index.ts";
import type { Tables } from "./table-schema.ts";
import { param, prepare, type SqlReader } from "./statement.ts";

/**
 * Number of the newest entries that keep their bytes in their rows, because most reads of an action come soon after its
 * decision.
 */
export const UNBUNDLED_ENTRIES = 4096;
/** Size of the cache of decoded bundles, in bytes. */
const CACHE_BYTES = 4_000_000;
const MAX_BUNDLE_BYTES = TILE_WIDTH * (MAX_ENTRY_BYTES + 2);
const GZIP_LEVEL = 6;
const EMPTY_LEAF = hashLeaf(new Uint8Array(0));

/** The columns of an entry's row that this file reads. */
export interface EntryBytes {
  seq: number;
  leaf_hash: Uint8Array;
  /** The bytes of the entry; empty if they are in a bundle. */
  bytes: Uint8Array;
}

export interface BundleReader {
  /**
   * Returns the rows. Adds the bytes from bundles to rows without bytes. Throws `StorageError` of kind "corrupt" if
   * bytes do not match their leaf hash. The transaction stays usable, because no statement has failed.
   */
  withBytes<Row extends EntryBytes>(db: SqlReader, rows: Row[]): Promise<Row[]>;
}

export function prepareBundleReads(db: Kysely<Tables>) {
  return {
    bundle: prepare(() => db.selectFrom("entry_bundles").select("bytes").where("start", "=", param("start"))),
    lastBundle: prepare(() => db.selectFrom("entry_bundles").select((eb) => eb.fn.max("start").as("start"))),
    /**
     * Reads bundles, each with the number of its 256 entries that are stored correctly. A followed entry must have its
     * bytes in its row, because every process reads it at startup; other entries must not.
     */
    bundledEntries: prepare(() =>
      db
        .selectFrom(
          db
            .selectFrom("entry_bundles")
            .select("start")
            .where("start", ">", param("after"))
            .orderBy("start")
            .limit(param<number>("limit"))
            .as("page"),
        )
        .select([
          "start",
          sql<number>`(select count(*) from entries where seq >= page.start and seq < page.start + ${sql.lit(TILE_WIDTH)} and (length(bytes) > 0) = (followed = 1))`.as(
            "n",
          ),
        ])
        .orderBy("start"),
    ),
  };
}

export function prepareBundleWrites(db: Kysely<Tables>) {
  return {
    insertBundle: prepare(() =>
      db.insertInto("entry_bundles").values({ start: param<number>("start"), bytes: param<Uint8Array>("bytes") }),
    ),
    emptyEntries: prepare(() =>
      db
        .updateTable("entries")
        // Also set `seq`. Otherwise SQLite shortens each row in place and does not free any pages.
        .set({ seq: sql<number>`seq`, bytes: param<Uint8Array>("none") })
        .where("seq", ">=", param("from"))
        .where("seq", "<", param("to"))
        .where("followed", "=", sql.lit(0)),
    ),
  };
}

const compress = (bytes: Uint8Array): Promise<Uint8Array> =>
  new Promise((resolve, reject) =>
    gzip(bytes, { level: GZIP_LEVEL }, (error, packed) => (error == null ? resolve(packed) : reject(error))),
  );

const tileStart = (seq: number): number => seq - (seq % TILE_WIDTH);

/** Decodes a bundle. Throws unless it has as many entries as a tile. */
function decodeBundle(packed: Uint8Array): Uint8Array[] {
  const entries = decodeEntryBundle(gunzipSync(packed, { maxOutputLength: MAX_BUNDLE_BYTES }));
  if (entries.length !== TILE_WIDTH) throw new RangeError(`it has ${entries.length} entries`);
  return entries;
}

const corruptError = (message: string, cause?: unknown): StorageError =>
  new StorageError("corrupt", `${message}; run assent audit`, { cause });

const hasHash = (bytes: Uint8Array | undefined, leafHash: Uint8Array): bytes is Uint8Array =>
  bytes !== undefined && equalBytes(hashLeaf(bytes), leafHash);

/**
 * Creates a reader of the bytes of entries. It verifies the bytes and caches bundles.
 * @example
 * const reader = createReader(reads, executor, createBundleReader(reads));
 */
export function createBundleReader(reads: Pick<ReturnType<typeof prepareBundleReads>, "bundle">): BundleReader {
  const cache = createBundleCache();

  async function readBundle(db: SqlReader, seq: number): Promise<Uint8Array[]> {
    const start = tileStart(seq);
    const subject = `entry ${seq} was altered: the bundle of entries ${start} to ${start + TILE_WIDTH - 1}`;
    const row = (await db.all(reads.bundle, { start }))[0];
    if (row === undefined) throw corruptError(`${subject} is missing, and the entry has no bytes of its own`);
    try {
      const entries = decodeBundle(row["bytes"] as Uint8Array);
      cache.put(start, entries);
      return entries;
    } catch (error) {
      throw corruptError(`${subject} cannot be read: ${String(error)}`, error);
    }
  }

  async function bytesOf(db: SqlReader, { seq, leaf_hash }: EntryBytes): Promise<Uint8Array> {
    const start = tileStart(seq);
    const cached = cache.get(start)?.[seq - start];
    // Return a copy, so that a caller cannot change the cached bundle or keep all of it in memory.
    if (hasHash(cached, leaf_hash)) return new Uint8Array(cached);
    const stored = (await readBundle(db, seq))[seq - start];
    if (!hasHash(stored, leaf_hash))
      throw corruptError(`entry ${seq} was altered: its bytes in its bundle do not hash to its leaf hash`);
    return new Uint8Array(stored);
  }

  return {
    async withBytes(db, rows) {
      for (const row of rows)
        if (row.bytes.length === 0 && !equalBytes(row.leaf_hash, EMPTY_LEAF)) row.bytes = await bytesOf(db, row);
      return rows;
    },
  };
}

/** Caches decoded bundles, up to `CACHE_BYTES`. Evicts the bundle that was decoded first. */
function createBundleCache() {
  const bundles = new Map<number, { entries: Uint8Array[]; size: number }>();
  return {
    get: (start: number): Uint8Array[] | undefined => bundles.get(start)?.entries,
    put(start: number, entries: Uint8Array[]): void {
      bundles.delete(start);
      bundles.set(start, { entries, size: entries.reduce((sum, { length }) => sum + length, 0) });
      let total = [...bundles.values()].reduce((sum, { size }) => sum + size, 0);
      for (const [oldest, { size }] of bundles) {
        if (total <= CACHE_BYTES || oldest === start) break;
        bundles.delete(oldest);
        total -= size;
      }
    },
  };
}

/**
 * Encodes the bundle of the 256 entries from `start`. Throws `StorageError` of kind "corrupt" if an entry is missing or
 * does not match its leaf hash, or if the bundle does not decode to the same entries.
 */
export async function encodeBundle(start: number, rows: readonly EntryBytes[]): Promise<Uint8Array> {
  for (let i = 0; i < TILE_WIDTH; i++) {
    const row = rows[i];
    if (row?.seq !== start + i) throw corruptError(`entry ${start + i} is missing`);
    assertUnaltered(row, row.bytes);
  }
  const packed = new Uint8Array(await compress(encodeEntryBundle(rows.map(({ bytes }) => bytes))));
  const decoded = decodeBundle(packed);
  rows.forEach((row, i) => assertUnaltered(row, decoded[i] as Uint8Array));
  return packed;
}

function assertUnaltered({ seq, leaf_hash }: EntryBytes, bytes: Uint8Array): void {
  if (bytes.length === 0 || !hasHash(bytes, leaf_hash))
    throw corruptError(`entry ${seq} was altered: its bytes do not hash to its leaf hash`);
}
