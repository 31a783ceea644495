/**
 * Finds an entry by its leaf hash. An index over random hashes costs each decision a page of its own, so there is none:
 * of each 8,192 entries a run is made in the background, which holds a part of each hash and the entry's place, in order,
 * cut by the hash's first byte; what came after the last run is looked at one by one. What is found so is held against
 * the whole hash.
 */
import type { Kysely } from "kysely";
import { StorageError } from "../../contract/storage.ts";
import { equalBytes } from "../../domain/hash.ts";
import * as schema from "./schema.ts";
import type { Tables } from "./schema.ts";
import { param, plain, prepare, prepareInsert, type SqlExecutor, type SqlRow } from "./statement.ts";

/** Entries of a run. */
export const RUN = 8192;
/** Parts of a run: one for each first byte. */
const PARTS = 256;
/** Runs that a part's places leave room for. */
const RUNS = 2 ** 20;
/** Four bytes of the hash behind the first, and the place in the run. */
const ITEM = 6;
const HASH = 32;
const PAGE = 1024;

export function prepareRunReads(db: Kysely<Tables>) {
  const entries = db.selectFrom("entries").select(schema.ENTRY_COLUMNS).where("leaf_hash", "=", param("leaf_hash"));
  return {
    runs: prepare(
      db
        .selectFrom("leaf_runs")
        .select(["place", "bytes"])
        .where("place", ">=", param("from"))
        .where("place", "<", param("to"))
        .orderBy("place"),
    ),
    lastRun: prepare(
      db
        .selectFrom("leaf_runs")
        .select((eb) => eb.fn.max("place").as("place"))
        .where("place", "<", param("to")),
    ),
    /** All parts of a run. */
    run: prepare(
      db
        .selectFrom("leaf_runs")
        .select(["place", "bytes"])
        .where(
          "place",
          "in",
          Array.from({ length: PARTS }, (_, part) => param<number>(`part_${part}`)),
        )
        .orderBy("place"),
    ),
    countRuns: prepare(db.selectFrom("leaf_runs").select((eb) => eb.fn.countAll<number>().as("n"))),
    entryAt: prepare(entries.where("seq", "=", param("seq"))),
    entryBehind: prepare(entries.where("seq", ">=", param("from")).orderBy("seq").limit(param<number>("limit"))),
  };
}

export function prepareRunWrites(db: Kysely<Tables>) {
  return { insertRun: prepareInsert(db, "leaf_runs", ["place", "bytes"]) };
}

type RunReads = ReturnType<typeof prepareRunReads>;
type Reader = Pick<SqlExecutor, "all">;

/** The row of the first entry of this hash. */
export async function rowByHash(reads: RunReads, db: Reader, leaf_hash: Uint8Array): Promise<SqlRow | null> {
  if (leaf_hash.length !== HASH) return null;
  const from = (leaf_hash[0] as number) * RUNS;
  const runs = await db.all(reads.runs, { from, to: from + RUNS });
  for (const [run, row] of runs.entries()) {
    if (row["place"] !== from + run)
      throw new StorageError("corrupt", `run ${run} of the entries' hashes is missing; run assent audit`);
    for (const at of placesIn(row["bytes"] as Uint8Array, leaf_hash)) {
      const [entry] = await db.all(reads.entryAt, { leaf_hash, seq: run * RUN + at });
      if (entry !== undefined) return entry;
    }
  }
  return (await db.all(reads.entryBehind, { leaf_hash, from: runs.length * RUN, limit: 1 }))[0] ?? null;
}

function placesIn(part: Uint8Array, hash: Uint8Array): number[] {
  const places: number[] = [];
  for (let at = 0; at + ITEM <= part.length; at += ITEM) {
    if (part[at] !== hash[1] || part[at + 1] !== hash[2] || part[at + 2] !== hash[3] || part[at + 3] !== hash[4])
      continue;
    places.push((part[at + 4] as number) * 256 + (part[at + 5] as number));
  }
  return places;
}

/** The rows of a run, of its entries' hashes. */
export function runOf(run: number, hashes: readonly Uint8Array[]): { place: number; bytes: Uint8Array }[] {
  const parts: number[][] = Array.from({ length: PARTS }, () => []);
  hashes.forEach((hash, i) => {
    const next = new DataView(hash.buffer, hash.byteOffset, HASH).getUint32(1);
    (parts[hash[0] as number] as number[]).push(next * 2 ** 16 + i);
  });
  return parts.map((items, part) => {
    const bytes = new Uint8Array(items.length * ITEM);
    const view = new DataView(bytes.buffer);
    // Numbers of 48 bits, which are in the order of the hashes.
    Float64Array.from(items)
      .sort()
      .forEach((item, i) => {
        view.setUint32(i * ITEM, Math.floor(item / 2 ** 16));
        view.setUint16(i * ITEM + 4, item % 2 ** 16);
      });
    return { place: part * RUNS + run, bytes };
  });
}

/** How many runs there are. */
export async function countRuns(reads: RunReads, db: Reader): Promise<number> {
  const [row] = await db.all(reads.lastRun, { to: RUNS });
  const last = row === undefined ? null : plain<{ place: number | null }>(row).place;
  return last === null ? 0 : last + 1;
}

/** The hashes of a run, read in pieces: requests come between. */
export async function hashesOf(
  leafHashes: (from: number, to: number) => Promise<Uint8Array[]>,
  run: number,
): Promise<Uint8Array[]> {
  const hashes: Uint8Array[] = [];
  for (let from = run * RUN; from < (run + 1) * RUN; from += PAGE) {
    hashes.push(...(await leafHashes(from, from + PAGE)));
    await new Promise((resolve) => setTimeout(resolve));
  }
  if (hashes.length !== RUN || hashes.some(({ length }) => length !== HASH))
    throw new StorageError("corrupt", `of the ${RUN} entries from ${run * RUN} on ${hashes.length} are there`);
  return hashes;
}

/** What is wrong with the runs: an entry that is there and is not found by its hash, say. */
export async function wrongRuns(
  reads: RunReads,
  db: Reader,
  leafHashes: (from: number, to: number) => Promise<Uint8Array[]>,
): Promise<string[]> {
  const faults: string[] = [];
  const runs = await countRuns(reads, db);
  for (let run = 0; run < runs; run++) {
    const rows = runOf(run, await hashesOf(leafHashes, run));
    const places = Object.fromEntries(rows.map(({ place }, part) => [`part_${part}`, place]));
    const stored = await db.all(reads.run, places);
    if (stored.length !== PARTS || !rows.every(({ bytes }, i) => equalBytes(bytes, stored[i]?.["bytes"] as Uint8Array)))
      faults.push(`run ${run} of the entries' hashes does not hold those of its entries`);
  }
  const [row] = await db.all(reads.countRuns, {});
  const count = Number(row?.["n"]);
  // One that was made meanwhile has more.
  if (count !== runs * PARTS && (await countRuns(reads, db)) === runs)
    faults.push(`the runs of the entries' hashes have ${count} rows, not ${runs * PARTS}`);
  return faults;
}
