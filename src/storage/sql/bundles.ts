/**
 * Bytes of entries, 256 at a time: an entry that has none of its own has them in the bundle of its tile, as C2SP
 * tlog-tiles lays them out, compressed with gzip. What comes out of a bundle is held against the entry's leaf hash each
 * time, so that a bundle can be lost or damaged but cannot say anything else.
 */
import { gunzipSync, gzip } from "node:zlib";
import { sql, type Kysely } from "kysely";
import { StorageError } from "../../contract/storage.ts";
import type { EntryRow } from "../../contract/storage.ts";
import {
  FOLLOWED_TYPES,
  MAX_ENTRY_BYTES,
  decodeEntry,
  type DecisionEntry,
  type EntryType,
} from "../../domain/entries.ts";
import { equalBytes } from "../../domain/hash.ts";
import { hashLeaf } from "../../domain/merkle.ts";
import { decodeEntryBundle, encodeEntryBundle, TILE_WIDTH } from "../../domain/tiles.ts";
import type { Tables } from "./schema.ts";
import { param, prepare, type SqlExecutor, type Statement } from "./statement.ts";

/** The newest entries keep their own bytes: what is asked about an action mostly comes soon after it. */
export const KEPT = 4096;
/** Bytes of bundles that are held decoded. */
const HELD = 4_000_000;
const LONGEST = TILE_WIDTH * (MAX_ENTRY_BYTES + 2);
const LEVEL = 6;
/** These keep their own bytes: each start reads all of them, and they stand in many bundles. */
const OWN = FOLLOWED_TYPES.map((type) => sql.lit(type));
const EMPTY_LEAF = hashLeaf(new Uint8Array(0));
const DECISION: EntryType = "decision";

/** Of an entry's row as much as it takes. */
export interface EntryBytes {
  seq: number;
  leaf_hash: Uint8Array;
  /** As the table has them they may be null as well: see `SqlDialect.noBytes`. */
  bytes: Uint8Array;
}

/** Columns of a decision's row that its bytes say as well: the row is without them where its bytes are in a bundle. */
export const SAID = ["action_id", "agent_id", "submitted_by"] as const;
type Said = Pick<EntryRow, (typeof SAID)[number]>;

/** What the bytes of a decision say; null where they are no decision's. */
function saidBy(bytes: Uint8Array): Said | null {
  try {
    const { action_id, agent_id, submitted_by } = decodeEntry<DecisionEntry>(bytes);
    const said = { action_id, agent_id, submitted_by: submitted_by.key_id };
    return SAID.every((column) => typeof said[column] === "string") ? said : null;
  } catch {
    return null;
  }
}

/** Whether the decisions among these entries can be told from their bytes alone. */
export function sayAll(rows: readonly EntryRow[]): boolean {
  return rows.every((row) => {
    if (row.type !== DECISION) return true;
    const said = saidBy(row.bytes);
    return said !== null && SAID.every((column) => said[column] === row[column]);
  });
}

function fill(row: EntryBytes & Partial<EntryRow>): void {
  // Where one of them is there, it was altered: the audit sees it as it stands.
  if (row.type === DECISION && SAID.every((column) => row[column] === null)) Object.assign(row, saidBy(row.bytes));
}

const hasNone = ({ bytes }: { bytes: Uint8Array | null }): boolean => bytes === null || bytes.length === 0;

export interface Bundles {
  /**
   * The same rows with their bytes, and of decisions what these say. Throws StorageError "corrupt" where these are not what their hashes say, and leaves
   * a transaction as it is: nothing of a read is half done, and only the statements themselves doom it.
   */
  whole<Row extends EntryBytes>(db: EntryReads, rows: Row[]): Promise<Row[]>;
}

export type EntryReads = Pick<SqlExecutor, "all">;

export function prepareBundleReads(db: Kysely<Tables>) {
  return {
    bundle: prepare(db.selectFrom("entry_bundles").select("bytes").where("start", "=", param("start"))),
    lastBundle: prepare(db.selectFrom("entry_bundles").select((eb) => eb.fn.max("start").as("start"))),
    /** Bundles, and how many of their entries have such bytes as they should, or none. */
    strayBundles: prepare(
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
          sql<number>`(select count(*) from entries where seq >= page.start and seq < page.start + ${sql.lit(TILE_WIDTH)} and (coalesce(length(bytes), 0) > 0) = (type in (${sql.join(OWN)})))`.as(
            "n",
          ),
        ])
        .orderBy("start"),
    ),
  };
}

export function prepareBundleWrites(db: Kysely<Tables>) {
  // Without its number SQLite would shorten each row where it stands, and keep the pages as they are.
  const emptied = { seq: sql<number>`seq`, bytes: param<Uint8Array>("none") };
  const unlessDecision = (column: string) =>
    sql<string | null>`case when type = ${sql.lit(DECISION)} then null else ${sql.ref(column)} end`;
  const empty = (values: object): Statement =>
    prepare(
      db
        .updateTable("entries")
        .set(values)
        .where("seq", ">=", param("from"))
        .where("seq", "<", param("to"))
        .where("type", "not in", OWN),
    );
  return {
    insertBundle: prepare(
      db.insertInto("entry_bundles").values({ start: param<number>("start"), bytes: param<Uint8Array>("bytes") }),
    ),
    emptyEntries: empty(emptied),
    /** The same, and of decisions what their bytes say. */
    emptySaid: empty({
      ...emptied,
      ...Object.fromEntries(SAID.map((column) => [column, unlessDecision(column)])),
    }),
  };
}

const compress = (bytes: Uint8Array): Promise<Uint8Array> =>
  new Promise((resolve, reject) =>
    gzip(bytes, { level: LEVEL }, (error, packed) => (error == null ? resolve(packed) : reject(error))),
  );

const startOf = (seq: number): number => seq - (seq % TILE_WIDTH);

/** Throws for what is no bundle of as many entries as a tile has. */
function unpack(packed: Uint8Array): Uint8Array[] {
  const entries = decodeEntryBundle(gunzipSync(packed, { maxOutputLength: LONGEST }));
  if (entries.length !== TILE_WIDTH) throw new RangeError(`it holds ${entries.length} entries`);
  return entries;
}

const corrupt = (message: string, cause?: unknown): StorageError =>
  new StorageError("corrupt", `${message}; run assent audit`, { cause });

export function createBundles(reads: Pick<ReturnType<typeof prepareBundleReads>, "bundle">): Bundles {
  /** The last ones that were read, the newest at the end. */
  const held = new Map<number, { entries: Uint8Array[]; size: number }>();

  /** Of the bundle that holds this entry. */
  async function load(db: EntryReads, seq: number): Promise<Uint8Array[]> {
    const start = startOf(seq);
    const named = `entry ${seq} was altered: the bundle of entries ${start} to ${start + TILE_WIDTH - 1}`;
    const row = (await db.all(reads.bundle, { start }))[0];
    if (row === undefined) throw corrupt(`${named} is missing, and it has no bytes of its own`);
    try {
      const entries = unpack(row["bytes"] as Uint8Array);
      hold(start, entries);
      return entries;
    } catch (error) {
      throw corrupt(`${named} cannot be read: ${String(error)}`, error);
    }
  }

  function hold(start: number, entries: Uint8Array[]): void {
    held.delete(start);
    held.set(start, { entries, size: entries.reduce((sum, { length }) => sum + length, 0) });
    let size = [...held.values()].reduce((sum, bundle) => sum + bundle.size, 0);
    for (const [oldest, bundle] of held) {
      if (size <= HELD || oldest === start) break;
      held.delete(oldest);
      size -= bundle.size;
    }
  }

  async function bytesOf(db: EntryReads, row: EntryBytes): Promise<Uint8Array> {
    const start = startOf(row.seq);
    const place = row.seq - start;
    const isRight = (bytes: Uint8Array | undefined): bytes is Uint8Array =>
      bytes !== undefined && equalBytes(hashLeaf(bytes), row.leaf_hash);
    const cached = held.get(start)?.entries[place];
    // Its own, so that nobody keeps the whole bundle, nor changes it.
    if (isRight(cached)) return new Uint8Array(cached);
    const read = (await load(db, row.seq))[place];
    if (!isRight(read))
      throw corrupt(`entry ${row.seq} was altered: its bytes in its bundle do not hash to its leaf hash`);
    return new Uint8Array(read);
  }

  return {
    async whole(db, rows) {
      for (const row of rows)
        if (hasNone(row) && !equalBytes(row.leaf_hash, EMPTY_LEAF)) {
          row.bytes = await bytesOf(db, row);
          fill(row);
        }
      return rows;
    },
  };
}

/**
 * The bundle of these entries. Throws StorageError "corrupt" where one of them is missing or is not what its hash says,
 * and unless the entries come out of it again as they went in.
 */
export async function packBundle(start: number, rows: readonly EntryBytes[]): Promise<Uint8Array> {
  for (let i = 0; i < TILE_WIDTH; i++) {
    const row = rows[i];
    if (row?.seq !== start + i) throw corrupt(`entry ${start + i} is missing`);
    assertWhole(row, row.bytes);
  }
  const packed = new Uint8Array(await compress(encodeEntryBundle(rows.map(({ bytes }) => bytes))));
  const out = unpack(packed);
  rows.forEach((row, i) => assertWhole(row, out[i] as Uint8Array));
  return packed;
}

function assertWhole({ seq, leaf_hash }: EntryBytes, bytes: Uint8Array): void {
  if (hasNone({ bytes }) || !equalBytes(hashLeaf(bytes), leaf_hash))
    throw corrupt(`entry ${seq} was altered: its bytes do not hash to its leaf hash`);
}
