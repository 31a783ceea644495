import { after, before, describe, it } from "node:test";
import { postgresStorage } from "../../plugins/storage-postgres/index.ts";
import type { Storage } from "../../src/contract/storage.ts";
import { storageSuite, withFaults, type StorageUnderTest } from "../../src/testing/index.ts";
import { startPostgres, withoutPostgres, type PostgresServer } from "../support/postgres.ts";

describe("the storage contract on Postgres", { skip: withoutPostgres }, () => {
  let server: PostgresServer;
  before(async () => {
    server = await startPostgres();
  });
  after(() => server.stop());

  async function create(wrap: (storage: Storage) => Storage): Promise<StorageUnderTest> {
    const url = await server.database();
    let storage = wrap(postgresStorage({ url, poolSize: 4 }));
    return {
      storage,
      async reopen() {
        await storage.close();
        storage = wrap(postgresStorage({ url, poolSize: 4 }));
        await storage.open();
        return storage;
      },
      another: async () => wrap(postgresStorage({ url, poolSize: 4 })),
      destroy: () => storage.close(),
    };
  }

  storageSuite({ test: (name, fn) => void it(name, fn), create: () => create((storage) => storage) });
  storageSuite({ test: (name, fn) => void it(`with fault points: ${name}`, fn), create: () => create(withFaults) });
});
