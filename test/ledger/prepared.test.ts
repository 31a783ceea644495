/** What takes long is done without the ledger's lock: the batch is given up, and runs again when it is done. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { NotPrepared } from "../../src/contract/host.ts";
import { StorageError, type Storage } from "../../src/contract/storage.ts";
import { emptyPolicySet } from "../../src/domain/policy/compile.ts";
import { openLedger, type OpenLedger } from "../../src/ledger/index.ts";
import { createLogger } from "../../src/serve/log.ts";
import { memoryStorage } from "../../src/testing/index.ts";
import { entry, vault } from "../support/ledger.ts";

/** A ledger, and whether its lock is held. */
async function opened(): Promise<{ ledger: OpenLedger; storage: Storage; locked(): boolean }> {
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
  const ledger = await openLedger({
    storage,
    vault,
    log: createLogger("silent"),
    clock: Date.now,
    origin: "prepared.example",
    maxBatch: 256,
    verifyAtStart: 1_000,
    keptCheckpoint: null,
    acceptRollback: false,
    policies: () => Promise.resolve({ digest: null, compiled: emptyPolicySet(), source: null }),
    confirm: (_tx, credential) => Promise.resolve(credential),
    outbox: null,
    agentFacts: () => Promise.resolve({}),
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
        throw new NotPrepared("a test", async () => {
          await Promise.resolve();
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

test("when it cannot be prepared nobody is told a verdict, nothing is written, and the next batch goes on", async () => {
  const { ledger, storage } = await opened();
  const jobs = [
    ledger.transact(async (tx) => tx.record(entry(1)).seq),
    ledger.transact(async () => {
      throw new NotPrepared("a test", () => {
        throw new Error("no memory for it");
      });
    }),
    // Never ready: the lock is not taken and given up for good.
    ledger.transact(async () => {
      throw new NotPrepared("another", () => undefined);
    }),
  ];
  for (const { status, reason } of (await Promise.allSettled(jobs)) as PromiseRejectedResult[]) {
    assert.equal(status, "rejected");
    assert.ok(reason instanceof StorageError && reason.kind === "unavailable", String(reason));
  }
  await assert.rejects(
    ledger.transact(async () => {
      throw new NotPrepared("another", () => undefined);
    }),
    /times in a row|could not be committed/,
  );
  assert.equal((await storage.head()).size, 0);
  assert.equal(await ledger.transact(async (tx) => tx.record(entry(4)).seq), 0);
  await ledger.close();
});
