/**
 * Finds entries by leaf hash, and actions by request hash. Hashes are random, so an ordinary index over them would
 * write a separate page for each decision. Instead, upkeep indexes 4,096 entries at a time, in a few rows. Newer
 * entries are searched without an index.
 *
 * Each row of `hash_index` contains the hashes of one span of entries whose first hexadecimal digit is `bucket`: four
 * bytes of the hash, and the position in the span as two bytes. Readers compare the whole hash of every row that they
 * find.
 */
import { sql, type Kysely } from "kysely";
import { equalBytes, TILE_WIDTH } from "../../src/storage/index.ts";
import { pack } from "./packed-columns.ts";
import {
  param,
  prepare,
  prepareInsert,
  readRows,
  type SqlExecutor,
  type SqlReader,
  type Statement,
} from "./statement.ts";
import { HASH_INDEX_COLUMNS, type Tables } from "./table-schema.ts";

/** Number of entries that are indexed at a time. */
export const HASH_SPAN = 4096;
const BUCKETS = 16;
const PREFIX_BYTES = 4;
const RECORD_BYTES = PREFIX_BYTES + 2;
/** Number of rows that one statement of a search reads. */
const SPANS_AT_ONCE = 256;

/** `entry`: leaf hashes of entries. `request`: request hashes of actions that were not erased. */
type Kind = "entry" | "request";
const KINDS: readonly Kind[] = ["entry", "request"];

interface HashOfEntry {
  seq: number;
  hash: Uint8Array;
}

type Reads = ReturnType<typeof prepareHashIndexReads>;
type Writes = ReturnType<typeof prepareHashIndexWrites>;
/** `head` reads the ledger's head. */
type ReadsWithHead = Reads & { head: Statement };

export function prepareHashIndexReads(db: Kysely<Tables>) {
  const rows = db
    .selectFrom("hash_index")
    .select(["span", "bytes"])
    .where("kind", "=", param("kind"))
    .where("bucket", "=", param("bucket"));
  return {
    hashIndexSpans: prepare(() =>
      rows.where("span", "<", param("before")).orderBy("span", "desc").limit(sql.lit(SPANS_AT_ONCE)),
    ),
    hashIndexRow: prepare(() => rows.where("span", "=", param("span"))),
    hashIndexSize: prepare(() => db.selectFrom("hash_index").select((eb) => eb.fn.countAll<number>().as("n"))),
    lastHashSpan: prepare(() =>
      db
        .selectFrom("hash_index")
        .select((eb) => eb.fn.max("span").as("span"))
        .where("kind", "=", sql.lit("entry"))
        .where("bucket", "=", sql.lit(0)),
    ),
    // Reads the hashes of new entries from complete tiles, which are far smaller than the rows of the entries.
    leafTiles: prepare(() =>
      db
        .selectFrom("tiles")
        .select(["index", "hashes"])
        .where("level", "=", sql.lit(0))
        .where("index", ">=", param("from"))
        .orderBy("index"),
    ),
    newestEntryByHash: prepare(() =>
      db
        .selectFrom("entries")
        .select("seq")
        .where("seq", ">=", param("from"))
        .where("leaf_hash", "=", param("leaf_hash")),
    ),
    newestActionsByRequest: prepare(() =>
      db
        .selectFrom("actions")
        .select("decision_seq as seq")
        .where("decision_seq", ">=", param("from"))
        .where(sql<boolean>`request_hash = ${param("request_hash", "hash")}`)
        .orderBy("decision_seq", "desc"),
    ),
    spanLeafHashes: prepare(() =>
      db
        .selectFrom("entries")
        .select(["seq", "leaf_hash as hash"])
        .where("seq", ">=", param("from"))
        .where("seq", "<", param("to"))
        .orderBy("seq"),
    ),
    spanRequestHashes: prepare(() =>
      db
        .selectFrom("actions")
        .select(["decision_seq as seq", "request_hash"])
        .where("decision_seq", ">=", param("from"))
        .where("decision_seq", "<", param("to"))
        .where("erased_at", "is", null)
        .orderBy("decision_seq"),
    ),
    requestHashToErase: prepare(() =>
      db
        .selectFrom("actions")
        .select(["decision_seq as seq", "request_hash"])
        .where("id", "=", param("id", "uuid"))
        .where("erased_at", "is", null)
        .where(sql<boolean>`status <> 'pending_approval'`),
    ),
  };
}

export function prepareHashIndexWrites(db: Kysely<Tables>) {
  return {
    insertHashIndex: prepareInsert(db, "hash_index", HASH_INDEX_COLUMNS),
    updateHashIndex: prepare(() =>
      db
        .updateTable("hash_index")
        .set({ bytes: param<Uint8Array>("bytes") })
        .where("kind", "=", param("kind"))
        .where("bucket", "=", param("bucket"))
        .where("span", "=", param("span")),
    ),
  };
}

const spanOf = (seq: number): number => Math.floor(seq / HASH_SPAN);
const bucketOf = (hash: Uint8Array): number => (hash[0] as number) >> 4;

/** Returns the sequence numbers in the row of a span whose hashes have the same prefix, newest first. */
function findInSpan(span: number, bytes: Uint8Array, hash: Uint8Array): number[] {
  const found: number[] = [];
  for (let at = bytes.length - RECORD_BYTES; at >= 0; at -= RECORD_BYTES)
    if (startsWith(bytes, at, hash)) found.push(span * HASH_SPAN + positionAt(bytes, at));
  return found;
}

const positionAt = (bytes: Uint8Array, at: number): number =>
  (bytes[at + PREFIX_BYTES] as number) * 256 + (bytes[at + PREFIX_BYTES + 1] as number);

function startsWith(bytes: Uint8Array, at: number, hash: Uint8Array): boolean {
  for (let i = 0; i < PREFIX_BYTES; i++) if (bytes[at + i] !== hash[i]) return false;
  return true;
}

/** Returns the rows of a span, one for each bucket. */
function encodeSpan(span: number, hashes: readonly HashOfEntry[]): Uint8Array[] {
  const buckets: number[][] = Array.from({ length: BUCKETS }, () => []);
  for (const { seq, hash } of hashes) {
    const position = seq - span * HASH_SPAN;
    buckets[bucketOf(hash)]?.push(...hash.subarray(0, PREFIX_BYTES), position >> 8, position & 255);
  }
  return buckets.map((bytes) => Uint8Array.from(bytes));
}

/** Returns the number of indexed entries. Entries are indexed in order, from the first one. */
async function countIndexed(reads: Reads, db: SqlReader): Promise<number> {
  const [row] = await readRows<{ span: number | null }>(db, reads.lastHashSpan, {});
  return row?.span == null ? 0 : (row.span + 1) * HASH_SPAN;
}

/** Yields the sequence numbers of indexed entries that can have the hash, newest first. */
async function* findIndexed(
  reads: Reads,
  db: SqlReader,
  kind: Kind,
  hash: Uint8Array,
  size: number,
): AsyncGenerator<number[]> {
  for (let before = spanOf(size); before > 0;) {
    const values = { kind, bucket: bucketOf(hash), before };
    const rows = await readRows<{ span: number; bytes: Uint8Array }>(db, reads.hashIndexSpans, values);
    for (const { span, bytes } of rows) {
      const found = findInSpan(span, bytes, hash);
      if (found.length > 0) yield found;
    }
    before = rows.length < SPANS_AT_ONCE ? 0 : (rows.at(-1)?.span ?? 0);
  }
}

/** Yields the sequence numbers of entries that can have this leaf hash, newest first. */
export async function* findEntriesByHash(reads: Reads, db: SqlReader, hash: Uint8Array): AsyncGenerator<number[]> {
  const indexed = await countIndexed(reads, db);
  let from = indexed;
  const tiles = await readRows<{ index: number; hashes: Uint8Array }>(db, reads.leafTiles, {
    from: indexed / TILE_WIDTH,
  });
  for (const { index, hashes } of tiles) {
    const at = Buffer.from(hashes.buffer, hashes.byteOffset, hashes.length).indexOf(hash);
    if (at >= 0) yield [index * TILE_WIDTH + Math.floor(at / hash.length)];
    from = (index + 1) * TILE_WIDTH;
  }
  const newest = await readRows<{ seq: number }>(db, reads.newestEntryByHash, { from, leaf_hash: hash });
  if (newest.length > 0) yield newest.map(({ seq }) => seq);
  yield* findIndexed(reads, db, "entry", hash, indexed);
  if (from === indexed) return;
  // Tiles can be altered, so search the rows of their entries, too.
  const unindexed = await readRows<{ seq: number }>(db, reads.newestEntryByHash, { from: indexed, leaf_hash: hash });
  if (unindexed.length > 0) yield unindexed.map(({ seq }) => seq);
}

/** Yields the sequence numbers of decisions on actions that can have this request hash, newest first. */
export async function* findDecisionsByRequest(
  reads: Reads,
  db: SqlReader,
  request_hash: string,
): AsyncGenerator<number[]> {
  const indexed = await countIndexed(reads, db);
  const newest = await readRows<{ seq: number }>(db, reads.newestActionsByRequest, { from: indexed, request_hash });
  if (newest.length > 0) yield newest.map(({ seq }) => seq);
  const hash = pack("hash", request_hash);
  if (hash !== null) yield* findIndexed(reads, db, "request", hash, indexed);
}

async function readSpan(reads: Reads, db: SqlReader, span: number): Promise<Record<Kind, Uint8Array[]>> {
  const [from, to] = [span * HASH_SPAN, (span + 1) * HASH_SPAN];
  const entry = await readRows<HashOfEntry>(db, reads.spanLeafHashes, { from, to });
  const rows = await readRows<{ seq: number; request_hash: string }>(db, reads.spanRequestHashes, { from, to });
  const request = rows.flatMap(({ seq, request_hash }) => {
    const hash = pack("hash", request_hash);
    return hash === null ? [] : [{ seq, hash }];
  });
  return { entry: encodeSpan(span, entry), request: encodeSpan(span, request) };
}

/** Returns the next span of entries to index; null if no complete span is left. */
async function findDueSpan(reads: ReadsWithHead, db: SqlReader): Promise<number | null> {
  const size = Number((await db.all(reads.head, {}))[0]?.["size"] ?? 0);
  const indexed = await countIndexed(reads, db);
  return size >= indexed + HASH_SPAN ? spanOf(indexed) : null;
}

/** Returns true if a span of entries is complete and not indexed. */
export async function isHashSpanDue(reads: ReadsWithHead, db: SqlReader): Promise<boolean> {
  return (await findDueSpan(reads, db)) !== null;
}

/** Indexes the next span. The transaction must lock the ledger's head, so that no action is erased meanwhile. */
export async function indexNextHashSpan(reads: ReadsWithHead, writes: Writes, db: SqlExecutor): Promise<void> {
  const span = await findDueSpan(reads, db);
  // Another process may have indexed the span.
  if (span === null) return;
  const rows = await readSpan(reads, db, span);
  for (const kind of KINDS)
    await db.runMany(
      writes.insertHashIndex,
      rows[kind].map((bytes, bucket) => ({ kind, bucket, span, bytes })),
    );
}

/** Removes the request hash of an action that is about to be erased. Does nothing if it cannot be erased. */
export async function removeRequestHash(reads: Reads, writes: Writes, db: SqlExecutor, id: string): Promise<void> {
  const [action] = await readRows<{ seq: number; request_hash: string }>(db, reads.requestHashToErase, { id });
  const hash = action === undefined ? null : pack("hash", action.request_hash);
  if (action === undefined || hash === null) return;
  const indexKey = { kind: "request", bucket: bucketOf(hash), span: spanOf(action.seq) } as const;
  const [row] = await readRows<{ bytes: Uint8Array }>(db, reads.hashIndexRow, indexKey);
  if (row === undefined) return;
  const position = action.seq % HASH_SPAN;
  const kept: number[] = [];
  for (let at = 0; at < row.bytes.length; at += RECORD_BYTES)
    if (positionAt(row.bytes, at) !== position) kept.push(...row.bytes.subarray(at, at + RECORD_BYTES));
  await db.run(writes.updateHashIndex, { ...indexKey, bytes: Uint8Array.from(kept) });
}

/** Returns a fault for each span whose index differs from its entries and actions. */
export async function findHashIndexFaults(reads: Reads, db: SqlReader): Promise<string[]> {
  const faults: string[] = [];
  const last = spanOf(await countIndexed(reads, db));
  for (let span = 0; span < last; span++) {
    // Compare again, because an action may have been erased between the reads.
    if ((await matchesEntries(reads, db, span)) || (await matchesEntries(reads, db, span))) continue;
    const [from, to] = [span * HASH_SPAN, (span + 1) * HASH_SPAN - 1];
    faults.push(`the index of the hashes of the entries ${from} to ${to} was altered`);
  }
  const [count] = await readRows<{ n: number }>(db, reads.hashIndexSize, {});
  if (Number(count?.n) > last * KINDS.length * BUCKETS) faults.push("the index of hashes has additional rows");
  return faults;
}

async function matchesEntries(reads: Reads, db: SqlReader, span: number): Promise<boolean> {
  const expected = await readSpan(reads, db, span);
  for (const kind of KINDS)
    for (const [bucket, bytes] of expected[kind].entries()) {
      const [row] = await readRows<{ bytes: Uint8Array }>(db, reads.hashIndexRow, { kind, bucket, span });
      if (row === undefined || !equalBytes(row.bytes, bytes)) return false;
    }
  return true;
}
