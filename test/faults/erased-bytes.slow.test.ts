/** After a checkpoint of the log and a compaction, no file of the embedded store contains erased data. */
import assert from "node:assert/strict";
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { sqliteStorage } from "../../plugins/storage-sqlite/index.ts";
import { loadSqlite } from "../../plugins/storage-sqlite/load-library.ts";
import type { Storage } from "../../src/contract/storage.ts";
import { actionRow, appendEntries, BASE_TIME } from "../../src/testing/suite/rows.ts";
import { until } from "../support/wait.ts";
import { storeFolder } from "./children/spawn.ts";

const { DatabaseSync } = await loadSqlite();
const folder = storeFolder();
const MARK = "anna@example.org";
let stores = 0;

const SMALL = 61;
const ROWS = SMALL + 9;

/**
 * Creates a store whose rows grow in a different order than they were written, so that SQLite rebuilds pages and leaves
 * copies in unused space. The last rows continue in overflow pages.
 */
async function filled(): Promise<{ path: string; storage: Storage; erase(): Promise<void> }> {
  const path = join(folder, `${++stores}`, "assent.db");
  const storage = sqliteStorage({ path });
  await storage.open();
  const ids: string[] = [];
  await storage.write(async (tx) => {
    await appendEntries(tx, ROWS);
    for (let n = 0; n < ROWS; n++) {
      const request = JSON.stringify({ params: { to: MARK, text: MARK.repeat(n < SMALL ? 2 + (n % 3) : 1000) } });
      const past = JSON.stringify({ limits: [], salt: MARK });
      const meta = JSON.stringify({ meta: { host: MARK }, salt: "00" });
      await tx.insertAction(actionRow(n, { request, past, meta }));
      ids.push(`action-${n < SMALL ? (n * 37) % SMALL : n}`);
    }
  });
  await storage.write(async (tx) => {
    for (const id of ids) {
      await tx.updateAction(
        id,
        { status: "allowed" },
        { status: "executing", started_at: BASE_TIME, updated_at: BASE_TIME },
      );
      const result = JSON.stringify({ meta: MARK.repeat(60) });
      await tx.updateAction(id, { status: "executing" }, { status: "succeeded", result, updated_at: BASE_TIME });
    }
  });
  return {
    path,
    storage,
    erase: () =>
      storage.write(async (tx) => {
        for (const id of ids) assert.equal(await tx.eraseAction(id, BASE_TIME), true);
      }),
  };
}

/** Returns the store's files that contain the value. */
function filesWith(path: string): string[] {
  const at = join(path, "..");
  return readdirSync(at).filter((name) => readFileSync(join(at, name)).includes(MARK));
}

/**
 * Compacts the store again, because SQLite can leave a copy of a row in unused space of a page that it rebuilt, despite
 * `secure_delete`.
 */
async function compactAgain(path: string): Promise<void> {
  const storage = sqliteStorage({ path });
  await storage.open();
  await storage.compact?.();
  await storage.close();
}

describe("erased data", () => {
  it("erased data is in no file of the store after compaction", async () => {
    const { path, storage, erase } = await filled();
    await erase();
    assert.deepEqual(filesWith(path), ["assent.db"], "the write-ahead log was emptied, and SQLite has left copies");
    const rows = await storage.actions({ visibility: { all: true }, limit: 100 });
    assert.ok(rows.length === ROWS && !JSON.stringify(rows).includes(MARK), "which are in no row");
    await storage.compact?.();
    assert.deepEqual(filesWith(path), [], "while the store was open");
    assert.equal((await storage.action("action-0"))?.erased_at, BASE_TIME);
    await storage.close();
    assert.deepEqual(filesWith(path), []);
  });

  it("is removed from the write-ahead log when the last reader ends, and at the next start after a crash", async () => {
    const { path, storage, erase } = await filled();
    const reader = new DatabaseSync(path);
    reader.exec("begin");
    reader.prepare("select count(*) from actions").all();
    await erase();
    assert.ok(filesWith(path).includes("assent.db-wal"), "the reader still needs its pages");
    await assert.rejects(storage.compact?.() ?? Promise.resolve(), /another program reads/);
    // The files as a power failure leaves them.
    const crashed = join(folder, `${++stores}`);
    mkdirSync(crashed);
    for (const name of ["assent.db", "assent.db-wal"])
      if (existsSync(join(path, "..", name))) copyFileSync(join(path, "..", name), join(crashed, name));
    reader.exec("commit");
    reader.close();
    await until("a later write takes them out", async () => {
      await storage.ping();
      return !filesWith(path).includes("assent.db-wal");
    });
    await storage.close();
    await compactAgain(path);
    assert.deepEqual(filesWith(path), []);

    const after = join(crashed, "assent.db");
    assert.notDeepEqual(filesWith(after), []);
    const again = sqliteStorage({ path: after });
    await again.open();
    assert.ok(!filesWith(after).includes("assent.db-wal"));
    assert.equal((await again.action("action-0"))?.request, "");
    await again.close();
    await compactAgain(after);
    assert.deepEqual(filesWith(after), []);
  });
});
