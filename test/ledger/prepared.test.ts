/**
 * Slow work runs without the ledger's lock. Afterwards the job runs again, and if it had written before, so does its
 * batch.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { PreparationRequired } from "../../src/contract/ledger.ts";
import { StorageError, type Storage } from "../../src/contract/storage.ts";
import { emptyPolicySet } from "../../src/domain/policy/compile/compile.ts";
import { type OpenLedger } from "../../src/ledger/index.ts";
import { memoryStorage } from "../../src/testing/index.ts";
import { entry, openLedgerOn } from "../support/ledger.ts";

/** A ledger, and whether its lock is held. */
async function opened(
  before: () => void = () => undefined,
): Promise<{ ledger: OpenLedger; storage: Storage; locked(): boolean }> {
  const memory = memoryStorage();
  await memory.open();
  let locked = false;
  const storage: Storage = {
    ...memory,
    write: (work) =>
      memory.write(async (tx) => {
        locked = true;
        try {
          return await work(tx);
        } finally {
          locked = false;
        }
      }),
  };
  const ledger = await openLedgerOn(storage, {
    policies: async () => {
      before();
      return { digest: null, compiled: emptyPolicySet(), source: null };
    },
  });
  return { ledger, storage, locked: () => locked };
}

test("the work is done once, without the lock, and the batch is recorded once", async () => {
  const { ledger, storage, locked } = await opened();
  const heldMeanwhile: boolean[] = [];
  let ready = false;
  const seqs = await Promise.all([
    ledger.transact(async (tx) => tx.record(entry(1)).seq),
    ledger.transact(async (tx) => {
      const { seq } = tx.record(entry(2));
      await tx.putMeta("wrote", "before it was ready");
      if (!ready)
        throw new PreparationRequired("a test", () => {
          heldMeanwhile.push(locked());
          ready = true;
        });
      return seq;
    }),
    ledger.transact(async (tx) => tx.record(entry(3)).seq),
  ]);
  assert.deepEqual(seqs, [0, 1, 2]);
  assert.deepEqual(heldMeanwhile, [false]);
  assert.equal((await storage.head()).size, 3);
  await ledger.close();
});

test("many jobs that each need preparation neither refuse each other nor make each other run again", async () => {
  const { ledger, storage } = await opened();
  const ready = new Set<number>();
  let runs = 0;
  const done = await Promise.allSettled(
    Array.from({ length: 40 }, (_, i) =>
      ledger.transact(async (tx) => {
        runs += 1;
        if (!ready.has(i)) throw new PreparationRequired(`number ${i}`, () => void ready.add(i));
        return tx.record(entry(i)).seq;
      }),
    ),
  );
  assert.deepEqual(
    done.map(({ status }) => status),
    done.map(() => "fulfilled"),
  );
  assert.equal((await storage.head()).size, 40);
  assert.equal(runs, 80);
  await ledger.close();
});

test("a job that cannot be prepared, or is never prepared, fails alone", async () => {
  const { ledger } = await opened();
  const first = ledger.transact(async (tx) => tx.record(entry(1)).seq);
  const failing = ledger.transact(async () => {
    throw new PreparationRequired("a test", () => Promise.reject(new Error("no memory for it")));
  });
  const never = ledger.transact(async () => {
    throw new PreparationRequired("another", () => undefined);
  });
  const last = ledger.transact(async (tx) => tx.record(entry(2)).seq);
  const done = await Promise.allSettled([first, failing, never, last]);
  assert.deepEqual(
    done.map(({ status }) => status),
    ["fulfilled", "rejected", "rejected", "fulfilled"],
  );
  for (const { reason } of done.slice(1, 3) as PromiseRejectedResult[])
    assert.ok(reason instanceof StorageError && reason.kind === "unavailable", String(reason));
  await ledger.close();
});

test("other jobs do not wait for the preparation of one", async () => {
  const { ledger, storage } = await opened();
  let finish: () => void = () => undefined;
  let ready = false;
  const slow = ledger.transact(async (tx) => {
    tx.record(entry(1));
    if (!ready)
      throw new PreparationRequired("a test", async () => {
        await new Promise<void>((resolve) => (finish = resolve));
        ready = true;
      });
    return tx.record(entry(2)).seq;
  });
  assert.equal(await ledger.transact(async (tx) => tx.record(entry(3)).seq), 0);
  assert.equal(await ledger.transact(async (tx) => tx.record(entry(4)).seq), 1);
  const closed = ledger.close();
  finish();
  assert.equal(await slow, 3, "what was taken is answered before the ledger is closed");
  await closed;
  assert.equal((await storage.head()).size, 4);
});

test("if the active policies cannot be prepared no decision is returned, and the next batch continues", async () => {
  let failing = true;
  const { ledger, storage } = await opened(() => {
    if (!failing) return;
    throw new PreparationRequired("the set", () => {
      throw new Error("no memory for it");
    });
  });
  const jobs = [1, 2].map((i) => ledger.transact(async (tx) => tx.record(entry(i)).seq));
  for (const { status, reason } of (await Promise.allSettled(jobs)) as PromiseRejectedResult[]) {
    assert.equal(status, "rejected");
    assert.ok(reason instanceof StorageError && reason.kind === "unavailable", String(reason));
  }
  assert.equal((await storage.head()).size, 0);
  failing = false;
  assert.equal(await ledger.transact(async (tx) => tx.record(entry(4)).seq), 0);
  await ledger.close();
});
