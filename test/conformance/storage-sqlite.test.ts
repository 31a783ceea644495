import { rm } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { sqliteStorage } from "../../plugins/storage-sqlite/index.ts";
import type { Storage } from "../../src/contract/storage.ts";
import { storageSuite, withFaults, type StorageUnderTest } from "../../src/testing/index.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

async function create(wrap: (storage: Storage) => Storage): Promise<StorageUnderTest> {
  const folder = temporaryFolder("assent-sqlite-");
  const path = join(folder, "assent.db");
  let storage = wrap(sqliteStorage({ path }));
  return {
    storage,
    async reopen() {
      await storage.close();
      // Another object: nothing may survive but the file.
      storage = wrap(sqliteStorage({ path }));
      await storage.open();
      return storage;
    },
    another: async () => wrap(sqliteStorage({ path })),
    async destroy() {
      await storage.close();
      await rm(folder, { recursive: true });
    },
  };
}

storageSuite({ test: (name, fn) => void test(name, fn), create: () => create((storage) => storage) });
storageSuite({ test: (name, fn) => void test(`with fault points: ${name}`, fn), create: () => create(withFaults) });
