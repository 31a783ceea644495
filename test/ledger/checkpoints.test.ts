/** Signing while other processes commit and sign: no valid head is refused, and no second history is signed. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { StorageError, type LedgerHead, type Storage } from "../../src/contract/storage.ts";
import type { RecordableEntry } from "../../src/contract/ledger.ts";
import { Checkpoints } from "../../src/ledger/sign/checkpoints.ts";
import { CheckpointStore } from "../../src/ledger/sign/checkpoint-store.ts";
import { type OpenLedger } from "../../src/ledger/index.ts";
import { createProofReader } from "../../src/ledger/reader.ts";
import { openLedgerOn } from "../support/ledger.ts";
import { memoryStorage } from "../../src/testing/memory-storage.ts";
import { signerOf } from "../support/signer.ts";
import { until } from "../support/wait.ts";

const ORIGIN = "signing.example/log";
const signer = signerOf(ORIGIN);

/** Delays the response of one call: the call has run, and its response is delivered when the test says so. */
interface Gate {
  reached: Promise<void>;
  open(): void;
}

/** One of several processes on a store, whose next response of a method can be delayed. */
function replicaOf(storage: Storage): { storage: Storage; holdNext(method: "head" | "leafHashes"): Gate } {
  const held = new Map<string, { reached(): void; opened: Promise<void> }>();
  const gated =
    <Args extends unknown[], T>(name: string, method: (...args: Args) => Promise<T>) =>
    async (...args: Args): Promise<T> => {
      const hold = held.get(name);
      held.delete(name);
      const answer = await method(...args);
      hold?.reached();
      await hold?.opened;
      return answer;
    };
  return {
    storage: {
      ...storage,
      exclusive: false,
      head: gated("head", storage.head),
      write: (work) => storage.write((tx) => work({ ...tx, leafHashes: gated("leafHashes", tx.leafHashes) })),
    },
    holdNext(method) {
      let open = (): void => {};
      const opened = new Promise<void>((resolve) => (open = resolve));
      const reached = new Promise<void>((resolve) => held.set(method, { reached: resolve, opened }));
      return { reached, open };
    },
  };
}

function open(storage: Storage): Promise<OpenLedger> {
  return openLedgerOn(storage, { origin: ORIGIN });
}

async function opened(): Promise<Storage> {
  const storage = memoryStorage();
  await storage.open();
  return storage;
}

const entry = (name: string): RecordableEntry =>
  ({
    type: "agent",
    v: 1,
    at: "2026-01-01T00:00:00.000Z",
    change: "updated",
    agent: { name },
    by: null,
  }) as never;
const add = (ledger: OpenLedger, name: string): Promise<number> =>
  ledger.transact(async (tx) => tx.record(entry(name)).seq);

test("a head that was read before an own commit is signed before the committed one", async () => {
  const replica = replicaOf(await opened());
  const ledger = await open(replica.storage);
  await add(ledger, "a");
  const gate = replica.holdNext("head");
  const checkpoint = ledger.checkpoint();
  await gate.reached;
  await add(ledger, "b");
  gate.open();
  assert.equal((await checkpoint).size, 1);
  assert.equal((await ledger.checkpoint()).size, 2);
  await ledger.close();
});

test("signing a head while the writer reads the tree does not halt it", async () => {
  const storage = await opened();
  const replica = replicaOf(storage);
  const [one, two] = [await open({ ...storage, exclusive: false }), await open(replica.storage)];
  await add(two, "a");
  // Another process moves the head: the writer must check that it extends what it signed.
  await add(one, "b");
  const gate = replica.holdNext("leafHashes");
  const late = add(two, "c");
  await gate.reached;
  assert.equal((await two.checkpoint()).size, 2);
  gate.open();
  assert.equal(await late, 2);
  assert.equal(two.halted(), null);
  await one.close();
  await two.close();
});

for (const kind of ["full", "readonly", "locked", "conflict", "unavailable"] as const)
  test(`a read of the tree that fails (${kind}) delays the signature, and does not halt the ledger`, async () => {
    const storage = await opened();
    let isFailing = false;
    let failures = 0;
    const ledger = await open({
      ...storage,
      leafHashes(...range) {
        if (!isFailing) return storage.leafHashes(...range);
        failures++;
        return Promise.reject(new StorageError(kind, "cannot read the tree"));
      },
    });
    await add(ledger, "first");
    // The next head must be compared with this checkpoint, which was signed on request.
    assert.equal((await ledger.checkpoint()).size, 1);
    isFailing = true;
    await add(ledger, "second");
    await until("the read has failed", () => failures > 0);
    isFailing = false;
    await until(
      "the entry is signed, or the ledger is halted",
      () => ledger.unsignedMs() === 0 || ledger.halted() !== null,
    );
    assert.equal(ledger.halted(), null);
    await ledger.close();
  });

test("of two histories that both extend the last signature only one is signed", async () => {
  const heads: LedgerHead[] = [];
  let storage: Storage | null = null;
  for (const names of [["a"], ["a", "b"], ["a", "other", "c"]]) {
    storage = await opened();
    const ledger = await open(storage);
    for (const name of names) await add(ledger, name);
    heads.push(await storage.head());
    await ledger.close();
  }
  const [first, second, other] = heads as [LedgerHead, LedgerHead, LedgerHead];
  const checkpoints = new Checkpoints({
    origin: ORIGIN,
    signers: () => [signer],
    proofs: createProofReader(storage as Storage),
    start: null,
    keep: () => Promise.resolve(),
    signed() {},
    failed: (error) => assert.fail(error as Error),
  });
  await checkpoints.sign(() => Promise.resolve(first));
  let answer = (_head: LedgerHead): void => {};
  const slow = checkpoints.sign(() => new Promise((resolve) => (answer = resolve)));
  checkpoints.committed(second, checkpoints.latest());
  await checkpoints.close();
  const refused = assert.rejects(slow, (error) => error instanceof StorageError && error.kind === "corrupt");
  answer(other);
  await turn();
  answer(other);
  await refused;
  assert.equal(checkpoints.latest()?.size, 2);
});

test("a head is signed after one read, although others are signed during each read", async () => {
  const storage = await opened();
  const ledger = await open(storage);
  const heads: LedgerHead[] = [];
  for (let n = 0; n < 5; n++) {
    await add(ledger, `entry ${n}`);
    heads.push(await storage.head());
  }
  await ledger.close();
  const checkpoints = new Checkpoints({
    origin: ORIGIN,
    signers: () => [signer],
    proofs: createProofReader(storage),
    start: null,
    keep: () => Promise.resolve(),
    signed() {},
    failed: (error) => assert.fail(error as Error),
  });
  let reads = 0;
  const signed = await checkpoints.sign(async () => {
    checkpoints.committed(heads[reads++] as LedgerHead, checkpoints.latest());
    await checkpoints.close();
    return heads[reads] as LedgerHead;
  });
  assert.deepEqual([signed.size, reads], [2, 1]);
});

test("a restart signs and stores the entries that a killed process left unsigned", async () => {
  const storage = await opened();
  let isKilled = false;
  const killed = await open({
    ...storage,
    write: (work) =>
      storage.write((tx) =>
        work({ ...tx, putCheckpoint: async (size, note) => (isKilled ? undefined : tx.putCheckpoint(size, note)) }),
      ),
  });
  await add(killed, "a");
  isKilled = true;
  await add(killed, "b");
  await killed.close();
  assert.notEqual((await storage.checkpoint())?.size, 2);
  const restarted = await open(storage);
  await until("the head is signed", async () => (await storage.checkpoint())?.size === 2);
  await restarted.close();
});

test("a signature that a batch stored needs no transaction of its own, and the next one waits as long for its batch", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  let transactions = 0;
  let unstored: { size: number; note: string } | null = null;
  const store = new CheckpointStore(
    { write: () => Promise.reject(new StorageError("unavailable", `transaction ${++transactions}`)) },
    { unstored: () => unstored, stored: () => (unstored = null) },
    { error() {}, warn() {}, info() {}, debug() {} },
  );
  unstored = { size: 1, note: "first" };
  store.schedule();
  t.mock.timers.tick(150);
  store.stored(1);
  store.schedule();
  t.mock.timers.tick(25);
  unstored = { size: 2, note: "second" };
  store.schedule();
  t.mock.timers.tick(199);
  assert.equal(transactions, 0);
  t.mock.timers.tick(1);
  assert.equal(transactions, 1);
});
