/** A storage on Postgres for the suite of the storage contract. */
import { postgresStorage } from "../../plugins/storage-postgres/index.ts";
import type { StorageUnderTest } from "../../src/testing/index.ts";

export function postgresUnderTest(options: Parameters<typeof postgresStorage>[0]): StorageUnderTest {
  let storage = postgresStorage(options);
  return {
    storage,
    async reopen() {
      await storage.close();
      storage = postgresStorage(options);
      await storage.open();
      return storage;
    },
    another: async () => postgresStorage(options),
    destroy: () => storage.close(),
  };
}
