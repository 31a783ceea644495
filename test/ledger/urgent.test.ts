/** Urgent jobs run ahead of all others, and need no policy. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { StorageError } from "../../src/contract/storage.ts";
import { memoryStorage } from "../../src/testing/index.ts";
import { entry, openLedgerOn } from "../support/ledger.ts";

it("an urgent job runs ahead of all waiting jobs, and succeeds when the active policies cannot be loaded", async () => {
  const storage = memoryStorage();
  await storage.open();
  let broken = false;
  const ledger = await openLedgerOn(storage, {
    maxBatch: 2,
    policies: (_tx, digest) =>
      broken
        ? Promise.reject(new StorageError("corrupt", "the stored policy set does not hash to its digest"))
        : Promise.resolve({ digest, compiled: undefined as never, source: null }),
  });
  const order: string[] = [];
  const job = (name: string, i: number) => (tx: { record(body: ReturnType<typeof entry>): unknown }) => {
    order.push(name);
    tx.record(entry(i));
    return Promise.resolve(name);
  };
  // The first two are in a batch when the others arrive.
  const first = [ledger.transact(job("a", 0)), ledger.transact(job("b", 1))];
  const waiting = [2, 3, 4].map((i) => ledger.transact(job(`waiting ${i}`, i)));
  const urgent = [ledger.transactFirst(job("urgent 1", 5)), ledger.transactFirst(job("urgent 2", 6))];
  await Promise.all([...first, ...waiting, ...urgent]);
  assert.ok(order.indexOf("urgent 1") < order.indexOf("urgent 2"));
  assert.ok(order.indexOf("urgent 2") < order.indexOf("waiting 2"), order.join());
  broken = true;
  await assert.rejects(ledger.transact(job("no policies", 7)), StorageError);
  assert.equal(await ledger.transactFirst(job("without policies", 8)), "without policies");
  assert.equal((await storage.head()).size, 8);
  await ledger.close();
  await storage.close();
});
