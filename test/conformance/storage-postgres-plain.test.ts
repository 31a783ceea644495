/**
 * The storage contract on a Postgres of which only that is used which engines that speak its protocol have as well: no
 * NOTIFY, no triggers for statements, and, as ever, no advisory lock.
 */
import { after, before, describe, it } from "node:test";
import { postgresStorage } from "../../plugins/storage-postgres/index.ts";
import { storageSuite, type StorageUnderTest } from "../../src/testing/index.ts";
import { startPostgres, withoutPostgres, type PostgresServer } from "../support/postgres.ts";

describe("the storage contract on a plain Postgres", { skip: withoutPostgres }, () => {
  let server: PostgresServer;
  before(async () => {
    server = await startPostgres();
  });
  after(() => server.stop());

  async function create(): Promise<StorageUnderTest> {
    const options = { url: await server.database(), poolSize: 4, notify: false, statementTriggers: false };
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

  storageSuite({ test: (name, fn) => void it(name, fn), create });
});
