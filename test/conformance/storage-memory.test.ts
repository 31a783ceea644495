import { test } from "node:test";
import { memoryStorage, storageSuite } from "../../src/testing/index.ts";

storageSuite({
  test: (name, fn) => void test(name, fn),
  create: async () => {
    const storage = memoryStorage();
    const reopen = async () => {
      await storage.close();
      await storage.open();
      return storage;
    };
    return { storage, reopen, destroy: () => storage.close() };
  },
});
