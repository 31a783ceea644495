import { copyFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { sqliteStorage } from "../../plugins/storage-sqlite/index.ts";
import { storageSuite, type StorageUnderTest } from "../../src/testing/index.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const templateFolder = temporaryFolder("assent-sqlite-");
/**
 * A store with empty tables, which is copied for each test because creating the tables takes longer than most tests.
 */
const template = join(templateFolder, "assent.db");
before(async () => {
  const storage = sqliteStorage({ path: template });
  await storage.open();
  await storage.close();
});
after(() => rm(templateFolder, { recursive: true }));

async function create(): Promise<StorageUnderTest> {
  const folder = temporaryFolder("assent-sqlite-");
  const path = join(folder, "assent.db");
  await copyFile(template, path);
  let storage = sqliteStorage({ path });
  return {
    storage,
    async reopen() {
      await storage.close();
      // A new storage object, so that only the file remains.
      storage = sqliteStorage({ path });
      await storage.open();
      return storage;
    },
    another: async () => sqliteStorage({ path }),
    async destroy() {
      await storage.close();
      await rm(folder, { recursive: true });
    },
  };
}

storageSuite({ test: (name, fn) => void test(name, fn), create });
