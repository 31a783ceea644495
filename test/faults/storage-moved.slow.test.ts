/**
 * The files of a SQLite store are moved away or replaced while the service runs. Later writes to them would be lost.
 */
import assert from "node:assert/strict";
import { copyFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { sqliteStorage } from "../../plugins/storage-sqlite/index.ts";
import { StorageError } from "../../src/contract/storage.ts";
import { storeFolder } from "./children/spawn.ts";

const folder = storeFolder();
let stores = 0;

const isMoved = (error: unknown): boolean => {
  assert.ok(error instanceof StorageError && error.kind === "unavailable", String(error));
  assert.match(error.message, /was removed or replaced/);
  return true;
};

describe("a store whose file is not the one that was opened", () => {
  for (const [what, file, replaced] of [
    ["was removed", "assent.db", false],
    ["was replaced by a copy", "assent.db", true],
    ["lost its WAL", "assent.db-wal", false],
    ["got another WAL", "assent.db-wal", true],
  ] as const) {
    it(`${what}: the store rejects writes until the file is back`, async () => {
      const path = join(folder, `${++stores}`, "assent.db");
      const storage = sqliteStorage({ path });
      await storage.open();
      await storage.write((tx) => tx.putMeta("a", "1"));
      assert.equal(await storage.meta("a"), "1");
      const at = join(path, "..", file);
      renameSync(at, `${at}.away`);
      if (replaced) copyFileSync(`${at}.away`, at);
      await assert.rejects(
        storage.write((tx) => tx.putMeta("a", "2")),
        isMoved,
      );
      await assert.rejects(storage.ping(), isMoved);
      assert.equal(await storage.meta("a"), "1", "what is recorded can still be read");
      renameSync(`${at}.away`, at);
      await storage.write((tx) => tx.putMeta("a", "3"));
      await storage.close();
      await storage.open();
      assert.equal(await storage.meta("a"), "3");
      await storage.close();
    });
  }
});
