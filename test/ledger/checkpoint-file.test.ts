/** The file of the newest checkpoint, after a failed write and after the data folder was moved. */
import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { memoryStorage } from "../../src/testing/index.ts";
import { entry, openLedgerOn } from "../support/ledger.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

let folder: string;
before(() => {
  folder = temporaryFolder("assent-kept-");
});
after(() => rmSync(folder, { recursive: true, force: true }));

test("a failed write leaves no other file", async () => {
  const storage = memoryStorage();
  await storage.open();
  const path = join(folder, "full", "checkpoint");
  const ledger = await openLedgerOn(storage, { keptCheckpoint: path });
  await ledger.transact((tx) => Promise.resolve(tx.record(entry(0))));
  // The new content is written, but cannot replace a folder that is not empty.
  rmSync(path, { force: true });
  mkdirSync(path, { recursive: true });
  writeFileSync(join(path, "something"), "");
  await ledger.close();
  assert.deepEqual(readdirSync(join(folder, "full")), ["checkpoint"]);
  await storage.close();
});

test("a data folder that was moved gets no new checkpoint at its old path", async () => {
  const storage = memoryStorage();
  await storage.open();
  const data = join(folder, "data");
  const path = join(data, "checkpoint");
  const first = await openLedgerOn(storage, { keptCheckpoint: path });
  await first.transact((tx) => Promise.resolve(tx.record(entry(0))));
  await first.close();
  const kept = readFileSync(path, "utf8");
  const second = await openLedgerOn(storage, { keptCheckpoint: path });
  renameSync(data, join(folder, "moved"));
  await second.transact((tx) => Promise.resolve(tx.record(entry(1))));
  await second.close();
  assert.ok(!readdirSync(folder).includes("data"));
  assert.equal(readFileSync(join(folder, "moved", "checkpoint"), "utf8"), kept);
  await storage.close();
});
