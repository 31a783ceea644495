/**
 * A process continues from a head that another process moved only if that head extends its own; checking costs one
 * read.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { StorageError, type Storage } from "../../src/contract/storage.ts";
import { type OpenLedger } from "../../src/ledger/index.ts";
import { memoryStorage } from "../../src/testing/index.ts";
import { entry, openLedgerOn } from "../support/ledger.ts";

/** Simulates a store that other processes write. */
const shared = (storage: Storage): Storage => ({ ...storage, exclusive: false });

let made = 0;
const add = (ledger: OpenLedger, count: number): Promise<void> =>
  ledger.transact(async (tx) => {
    for (let i = 0; i < count; i++) tx.record(entry(made++));
  });

test("entries of another process are checked by one read of their hashes", async () => {
  const memory = memoryStorage();
  await memory.open();
  const [one, two] = [await openLedgerOn(shared(memory)), await openLedgerOn(shared(memory))];
  await add(one, 3);
  for (const count of [300, 1, 2000]) {
    await add(two, count);
    const reads = ["tx.leafHashes", "tx.tile", "tx.tileRoots", "leafHashes", "tile", "tileRoots"].map((name) =>
      memory.faults.calls(name),
    );
    await add(one, 1);
    const after = ["tx.leafHashes", "tx.tile", "tx.tileRoots", "leafHashes", "tile", "tileRoots"].map(
      (name, i) => memory.faults.calls(name) - (reads[i] as number),
    );
    assert.deepEqual(after, [1, 0, 0, 0, 0, 0]);
  }
  assert.equal((await one.checkpoint()).size, 3 + 300 + 1 + 1 + 1 + 2000 + 1);
  // If it is too far behind for that, through the tree.
  await add(two, 5000);
  await add(one, 1);
  assert.equal(one.halted(), null);
  await one.close();
  await two.close();
});

for (const [name, entries, signed] of [
  ["larger", 9, true],
  ["larger, with nothing of it signed", 9, false],
  ["of the same size", 5, true],
  ["smaller", 2, true],
] as const) {
  test(`another history that is ${name} halts the process, and nothing is written to it`, async () => {
    const [mine, other] = [memoryStorage(), memoryStorage()];
    await Promise.all([mine.open(), other.open()]);
    const builder = await openLedgerOn(shared(other));
    await add(builder, entries);
    if (signed) await builder.checkpoint();
    await builder.close();

    let current: Storage = mine;
    const switched = new Proxy({} as Storage, {
      get: (_target, member) =>
        member === "exclusive" ? false : member === "then" ? undefined : current[member as keyof Storage],
    });
    const ledger = await openLedgerOn(switched);
    await add(ledger, 5);
    // A restored copy, or another database at the same address.
    current = other;
    await assert.rejects(
      add(ledger, 1),
      (error: unknown) =>
        error instanceof StorageError && error.kind === "corrupt" && /does not continue/.test(error.message),
    );
    assert.match(ledger.halted() ?? "", /nothing more is written/);
    assert.equal((await other.head()).size, entries);
    current = mine;
    await assert.rejects(add(ledger, 1), StorageError);
    await ledger.close();
  });
}

test("a head with other entries is refused, although its size and the signed part match", async () => {
  const memory = memoryStorage();
  await memory.open();
  const [one, two] = [await openLedgerOn(shared(memory)), await openLedgerOn(shared(memory))];
  await add(one, 3);
  await add(two, 4);
  const { head } = memory;
  let lie = true;
  const storage: Storage = {
    ...memory,
    exclusive: false,
    write: (work) =>
      memory.write((tx) =>
        work({ ...tx, head: async () => (lie ? { ...(await tx.head()), root: new Uint8Array(32) } : tx.head()) }),
      ),
    head,
  };
  const third = await openLedgerOn(storage);
  await assert.rejects(add(third, 1), /does not continue/);
  lie = false;
  await Promise.all([one.close(), two.close(), third.close()]);
});
