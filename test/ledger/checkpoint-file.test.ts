/** The file of the newest checkpoint, after a failed write and after the data folder was moved. */
import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { RecordableEntry } from "../../src/contract/ledger.ts";
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

test("a store that lacks committed entries, which no checkpoint covers yet, is refused, and accepted with acceptRollback", async () => {
  const keptHead = join(folder, "head");
  const [older, newer] = [memoryStorage(), memoryStorage()];
  for (const storage of [older, newer]) await storage.open();
  const commit = async (storage: typeof older, entries: number): Promise<void> => {
    const ledger = await openLedgerOn(storage, { keptHead });
    for (let i = 0; i < entries; i++) await ledger.transact((tx) => Promise.resolve(tx.record(entry(i))));
    await ledger.close();
  };
  await commit(older, 1);
  rmSync(keptHead);
  await commit(newer, 2);
  await assert.rejects(openLedgerOn(older, { keptHead }), /has 1 entries, and this process committed 2/);
  await commit(newer, 0);
  const other = { ...entry(0), at: "2026-01-02T00:00:00.000Z" } as RecordableEntry;
  const forked = memoryStorage();
  await forked.open();
  const fork = await openLedgerOn(forked);
  for (let i = 0; i < 3; i++) await fork.transact((tx) => Promise.resolve(tx.record(other)));
  await fork.close();
  await assert.rejects(openLedgerOn(forked, { keptHead }), /does not contain the 2 entries/);
  const accepted = await openLedgerOn(forked, { keptHead, acceptRollback: true });
  await accepted.close();
  await (await openLedgerOn(forked, { keptHead })).close();
  for (const storage of [older, newer, forked]) await storage.close();
});
