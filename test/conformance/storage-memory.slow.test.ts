/**
 * The storage contract, tested with the in-memory storage. This storage has fault points, so the suite also tests that
 * they change nothing.
 */
import { test } from "node:test";
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
