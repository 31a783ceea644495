/** The first keys of a new store, if the batch that stores them runs twice. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { StorageError, type Storage } from "../../src/contract/storage.ts";
import { createFirstKeys, type FirstKeys } from "../../src/identity/first-keys.ts";
import { createKey, type KeyService } from "../../src/identity/keys.ts";
import { keyState } from "../../src/domain/recorded-keys.ts";
import { States } from "../../src/ledger/states.ts";
import { memoryStorage } from "../../src/testing/index.ts";
import { keyRow } from "../../src/testing/suite/rows.ts";
import { openLedgerOn } from "../support/ledger.ts";

const keys = {
  mint: (input) => ({
    value: `value of ${input.name}`,
    key: createKey(input.name, `value of ${input.name}`, input),
  }),
} as Pick<KeyService, "mint"> as KeyService;

/** `meanwhile` changes the store after a batch has failed with a conflict. */
async function firstKeysOf(meanwhile: (storage: Storage) => Promise<unknown>): Promise<[FirstKeys[], Promise<void>]> {
  const memory = memoryStorage();
  await memory.open();
  let thwarted = false;
  const storage: Storage = {
    ...memory,
    async write(work) {
      if (thwarted) return memory.write(work);
      thwarted = true;
      await memory
        .write(async (tx) => {
          await work(tx);
          throw new Error("taken back");
        })
        .catch(() => undefined);
      await meanwhile(memory);
      throw new StorageError("conflict", "another was first");
    },
  };
  const ledger = await openLedgerOn(storage, { states: () => States.initial([keyState]) });
  const shown: FirstKeys[] = [];
  const create = async (): Promise<void> => {
    try {
      await createFirstKeys(storage, ledger, keys, null, null, (first) => shown.push(first));
    } finally {
      await ledger.close();
    }
  };
  return [shown, create()];
}

test("they are displayed once", async () => {
  const [shown, done] = await firstKeysOf(async () => undefined);
  await done;
  assert.equal(shown.length, 1);
});

test("if another process stored its own keys meanwhile, the displayed keys are reported as useless", async () => {
  const [shown, done] = await firstKeysOf((storage) => storage.write((tx) => tx.insertKey(keyRow(1))));
  await assert.rejects(done, /the keys displayed here are invalid/);
  assert.equal(shown.length, 1);
});
