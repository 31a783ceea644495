/** When a batch is closed, and how it recovers from a conflict with another process's transaction. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { StorageError, type Storage } from "../../src/contract/storage.ts";
import { memoryStorage } from "../../src/testing/index.ts";
import { entry, openLedgerOn } from "../support/ledger.ts";

/** A store whose lock is acquired when the test says so. */
async function gated(): Promise<{ storage: Storage; faults: ReturnType<typeof memoryStorage>["faults"]; gate: Gate }> {
  const memory = memoryStorage();
  await memory.open();
  const gate: Gate = { waiting: [], writes: 0 };
  return {
    faults: memory.faults,
    gate,
    storage: {
      ...memory,
      async write(work) {
        gate.writes++;
        await new Promise<void>((resolve) => gate.waiting.push(resolve));
        return memory.write(work);
      },
    },
  };
}

interface Gate {
  waiting: (() => void)[];
  writes: number;
}

async function untilWaiting(gate: Gate): Promise<() => void> {
  while (gate.waiting.length === 0) await new Promise((resolve) => setImmediate(resolve));
  return gate.waiting.shift() as () => void;
}

test("jobs that arrive while another process holds the lock join the waiting batch", async () => {
  const { storage, gate } = await gated();
  const ledger = await openLedgerOn(storage, { maxBatch: 4 });
  const first = ledger.transact(async (tx) => tx.record(entry(0)).seq);
  const open = await untilWaiting(gate);
  const later = Array.from({ length: 5 }, (_, i) => ledger.transact(async (tx) => tx.record(entry(i + 1)).seq));
  open();
  assert.equal(await first, 0);
  assert.deepEqual(await Promise.all(later.slice(0, 3)), [1, 2, 3]);
  (await untilWaiting(gate))();
  assert.deepEqual(await Promise.all(later), [1, 2, 3, 4, 5]);
  assert.equal(gate.writes, 2, "a batch holds four");
  const closing = ledger.close();
  (await untilWaiting(gate))();
  await closing;
});

test("an urgent job that arrives while jobs wait for the lock runs alone in the next batch", async () => {
  const { storage, gate } = await gated();
  const ledger = await openLedgerOn(storage);
  const order: string[] = [];
  const say = (name: string) => async (tx: { record(body: ReturnType<typeof entry>): unknown }) => {
    tx.record(entry(order.length));
    order.push(name);
  };
  const jobs = [ledger.transact(say("first"))];
  const open = await untilWaiting(gate);
  jobs.push(ledger.transact(say("behind")), ledger.transactFirst(say("urgent")));
  open();
  await jobs[0];
  (await untilWaiting(gate))();
  await jobs[2];
  assert.deepEqual(order, ["first", "urgent"]);
  (await untilWaiting(gate))();
  await jobs[1];
  const closing = ledger.close();
  (await untilWaiting(gate))();
  await closing;
});

test("a failed job does not fail the jobs that joined its batch under the lock", async () => {
  const { storage, gate } = await gated();
  const ledger = await openLedgerOn(storage);
  const first = ledger.transact(async (tx) => tx.record(entry(0)).seq);
  const open = await untilWaiting(gate);
  const bad = assert.rejects(
    ledger.transact(async (tx) => {
      tx.record(entry(1));
      throw new Error("a bug");
    }),
    /a bug/,
  );
  const good = ledger.transact(async (tx) => tx.record(entry(2)).seq);
  open();
  (await untilWaiting(gate))();
  await bad;
  assert.deepEqual(await Promise.all([first, good]), [0, 1]);
  assert.equal((await storage.head()).size, 2);
  const closing = ledger.close();
  (await untilWaiting(gate))();
  await closing;
});

for (const operation of ["begin", "tx.head", "tx.append", "commit"])
  test(`a conflict in ${operation} causes a second run, and no job is refused`, async () => {
    const storage = memoryStorage();
    await storage.open();
    const ledger = await openLedgerOn(storage);
    storage.faults.failNext(operation, "not-persisted", { kind: "conflict" });
    const seqs = await Promise.all([1, 2, 3].map((i) => ledger.transact(async (tx) => tx.record(entry(i)).seq)));
    assert.deepEqual([seqs, storage.faults.waiting], [[0, 1, 2], 0]);
    assert.equal((await storage.head()).size, 3);
    await ledger.close();
  });

test("a batch that conflicts repeatedly is refused in the end", async () => {
  const memory = memoryStorage();
  await memory.open();
  let runs = 0;
  const storage: Storage = {
    ...memory,
    write: () => {
      runs++;
      return Promise.reject(new StorageError("conflict", "somebody else was first"));
    },
  };
  const ledger = await openLedgerOn(storage);
  await assert.rejects(
    ledger.transact(async (tx) => tx.record(entry(1))),
    (error) => error instanceof StorageError && error.kind === "conflict",
  );
  assert.equal(runs, 9);
  assert.equal((await memory.head()).size, 0);
  await ledger.close();
});
