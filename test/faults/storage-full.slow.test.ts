/**
 * A SQLite file runs full in the middle of a transaction. SQLite rolls the transaction back, and no later statement of
 * it may be executed.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { createSqlStorage, sqliteDialect, type SqlEngine } from "../../plugins/storage-sql/api.ts";
import { SqliteEngine } from "../../plugins/storage-sqlite/sqlite-engine.ts";
import { StorageError } from "../../src/contract/storage.ts";
import { actionRow, keyRow } from "../../src/testing/suite/rows.ts";
import { storeFolder } from "./children/spawn.ts";
import { override } from "../support/override.ts";

test("if one statement of a transaction finds no space, no other statement of it is stored", async () => {
  const engine = new SqliteEngine(join(storeFolder(), "assent.db"), 20);
  let isFull = false;
  const storage = createSqlStorage(
    override<SqlEngine>(engine, {
      async begin(purpose) {
        const tx = await engine.begin(purpose);
        // Limits the file to its current number of pages.
        if (isFull) await tx.query("pragma max_page_count = 1", []);
        return tx;
      },
    }),
    sqliteDialect,
  );
  await storage.open();
  isFull = true;
  await assert.rejects(
    storage.write((tx) =>
      Promise.all([tx.insertAction(actionRow(1, { request: "x".repeat(200_000) })), tx.putMeta("beside", "it")]),
    ),
    (error) => error instanceof StorageError && error.kind === "full",
  );
  assert.equal(await storage.meta("beside"), null);
  isFull = false;
  await storage.write((tx) => tx.insertKey(keyRow(1)));
  assert.equal(await storage.meta("beside"), null);
  await storage.close();
});
