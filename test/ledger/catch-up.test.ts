/**
 * Entries that this process was not notified of: those of another process if the store does not notify, and its own if
 * the commit seemed to fail.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Storage } from "../../src/contract/storage.ts";
import { memoryStorage } from "../../src/testing/index.ts";
import { entry, openLedgerOn } from "../support/ledger.ts";
import { until } from "../support/wait.ts";

test("an entry of another process is delivered if the store has no `watch`", async () => {
  const memory = memoryStorage();
  await memory.open();
  const shared: Storage = { ...memory, exclusive: false };
  const [one, other] = [await openLedgerOn(shared), await openLedgerOn(shared)];
  const seen: number[] = [];
  other.subscribe((entries) => seen.push(...entries.map(({ seq }) => seq)));
  await one.transact(async (tx) => tx.record(entry(1)));
  await until("the other process is notified", () => seen.length > 0);
  assert.deepEqual(seen, [0]);
  await one.close();
  await other.close();
});

test("an entry whose commit seemed to fail is delivered without another commit", async () => {
  const storage = memoryStorage();
  await storage.open();
  const ledger = await openLedgerOn(storage);
  const seen: number[] = [];
  ledger.subscribe((entries) => seen.push(...entries.map(({ seq }) => seq)));
  storage.faults.failNext("commit", "persisted");
  await assert.rejects(ledger.transact(async (tx) => tx.record(entry(1))));
  await until("the process's own subscribers are notified", () => seen.length > 0);
  assert.deepEqual(seen, [0]);
  assert.equal((await ledger.checkpoint()).size, 1);
  await ledger.close();
});
