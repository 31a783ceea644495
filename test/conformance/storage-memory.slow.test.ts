/**
 * The storage contract, tested with the in-memory storage. This storage has fault points, so the suite also tests that
 * they change nothing.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { EntryRow, Storage } from "../../src/contract/storage.ts";
import { createLoggedStorage, type LoggedChange } from "../../src/storage/log/logged.ts";
import { storageSuite } from "../../src/testing/index.ts";
import { memoryDisk, memoryStorage } from "../../src/testing/memory-storage.ts";

storageSuite({
  test: (name, fn) => void test(name, fn),
  create: async () => {
    const disk = memoryDisk();
    const storage = memoryStorage(disk);
    const reopen = async () => {
      await storage.close();
      await storage.open();
      return storage;
    };
    return { storage, reopen, another: async () => memoryStorage(disk), destroy: () => storage.close() };
  },
});

test("the suite names the bytes that a storage does not return as they were stored", async () => {
  const cases = new Map<string, () => Promise<void>>();
  storageSuite({
    test: (name, fn) => cases.set(name, fn),
    async create() {
      const memory = memoryStorage();
      const storage: Storage = {
        ...memory,
        entries: async (...range) => JSON.parse(JSON.stringify(await memory.entries(...range))) as EntryRow[],
      };
      return { storage, reopen: async () => storage, another: async () => storage, destroy: () => storage.close() };
    },
  });
  const largest = cases.get("the largest entry is returned with every byte") as () => Promise<void>;
  await assert.rejects(largest(), {
    name: "AssertionError",
    message: /^0\.leaf_hash is \{ '0': \d+.*; expected Uint8Array\(32\) \[ \d+.*\]; return bytes as a Uint8Array$/,
  });
});

test("a log that returns bytes as objects is rejected when it is opened", async () => {
  const lines: string[] = [];
  const storage = createLoggedStorage({
    name: "json",
    open: async () => lines.map((line) => JSON.parse(line) as LoggedChange),
    append: async (changes) => void lines.push(...changes.map((change) => JSON.stringify(change))),
    close: async () => {},
  });
  await storage.open();
  await storage.close();
  await assert.rejects(storage.open(), {
    kind: "corrupt",
    message: /^the log of json returned an object as "root" of a row of the table head; return bytes as a Uint8Array$/,
  });
});
