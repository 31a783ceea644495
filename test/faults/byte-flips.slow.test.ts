/**
 * Flips bytes of a SQLite file, as a failing disk does. The audit reports the flip, or the flip does not change any
 * recorded data.
 * @needs agents, authority, grants, plans, questions, reviewers, retention, stop, sub-agents, suggestions, tasks, users
 */
import assert from "node:assert/strict";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { sqliteStorage } from "../../plugins/storage-sqlite/index.ts";
import { loadSqlite } from "../../plugins/storage-sqlite/load-library.ts";
import { auditStore } from "../../src/testing/ledger-audit.ts";
import { isUnrecorded } from "../support/audit-flips.ts";
import { createRandom } from "../support/random.ts";
import { fillStore } from "../support/every-row.ts";
import { rawSqlite, type RawRow } from "../support/raw-store.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const FLIPS = 200;
const SEED = 20_261_123;
const PAGE = 8192;

const folder = temporaryFolder("assent-flips-");
const path = join(folder, "assent.db");
let filled: Awaited<ReturnType<typeof fillStore>>;
let whole: Buffer;

before(async () => {
  filled = await fillStore(
    (own) => sqliteStorage({ path: join(own, "assent.db") }),
    async ({ storage }) => storage.backup?.(path),
  );
  whole = readFileSync(path);
});
after(() => rmSync(folder, { recursive: true, force: true }));

function putInPlace(bytes: Buffer): void {
  for (const suffix of ["-wal", "-shm"]) rmSync(`${path}${suffix}`, { force: true });
  writeFileSync(path, bytes);
}

/** Returns the faults that the audit finds in the file. An error on opening the store counts as a fault. */
async function faults(): Promise<string[]> {
  const storage = sqliteStorage({ path });
  try {
    await storage.open({ readOnly: true });
    return (await auditStore(storage, filled.vkey, filled.vault)).faults;
  } catch (error) {
    return [String(error)];
  } finally {
    await storage.close();
  }
}

/** Returns all recorded data, as a reader of the tables gets it. */
async function content(): Promise<string> {
  const raw = await rawSqlite(path);
  try {
    const tables = [];
    for (const table of raw.tables)
      tables.push(
        (await raw.rows(table)).map((row: RawRow) =>
          table.columns.map((column) => (isUnrecorded({ table, row, column }) ? null : row[column])),
        ),
      );
    return JSON.stringify(tables);
  } finally {
    await raw.close();
  }
}

test(`${FLIPS} flipped bits: each is reported, or no recorded data has changed`, async (t) => {
  assert.deepEqual(await faults(), []);
  const expected = await content();
  const written = [...whole.keys()].filter((at) => whole[at] !== 0);
  const { random, pick } = createRandom(SEED);
  const missed: number[] = [];
  let harmless = 0;
  for (let i = 0; i < FLIPS; i++) {
    const [at, bit] = [pick(written), random(8)];
    const bytes = Buffer.from(whole);
    bytes[at] = (bytes[at] as number) ^ (1 << bit);
    putInPlace(bytes);
    if ((await faults()).length > 0) continue;
    putInPlace(bytes);
    if ((await content()) === expected) harmless++;
    else missed.push(at);
  }
  t.diagnostic(`${harmless} of ${FLIPS} go unnoticed and change nothing that is recorded`);
  assert.deepEqual(missed, []);
});

test("an index that disagrees with its table is a fault", async () => {
  putInPlace(whole);
  const { DatabaseSync } = await loadSqlite();
  const db = new DatabaseSync(path);
  const [key] = db.prepare("select hash from api_keys").all() as { hash: string | Uint8Array }[];
  const [table] = db.prepare("select rootpage from sqlite_schema where name = 'api_keys'").all() as {
    rootpage: number;
  }[];
  db.close();
  assert.ok(key !== undefined && table !== undefined);
  const ofTable = (at: number): boolean => Math.floor(at / PAGE) === table.rootpage - 1;
  const hash = Buffer.from(key.hash as string);
  let place = whole.indexOf(hash);
  while (ofTable(place)) place = whole.indexOf(hash, place + 1);
  assert.ok(place > 0, "an index holds the hash");
  const bytes = Buffer.from(whole);
  bytes[place] = (bytes[place] as number) ^ 1;
  putInPlace(bytes);
  assert.match((await faults()).join("\n"), /missing from index|wrong # of entries in index/);
});
