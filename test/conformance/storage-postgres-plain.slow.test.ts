/**
 * The storage contract on a Postgres restricted to what compatible engines support: no NOTIFY, no statement triggers, and
 * no advisory locks, which are never used.
 */
import { after, before, describe, it } from "node:test";
import { postgresStorage } from "../../plugins/storage-postgres/index.ts";
import { storageSuite } from "../../src/testing/index.ts";
import { postgresUnderTest } from "../support/postgres-under-test.ts";
import { startPostgres, withoutPostgres, type PostgresServer } from "../support/postgres.ts";

const RESTRICTIONS = { notify: false, statementTriggers: false };

describe("the storage contract on a plain Postgres", { skip: withoutPostgres }, () => {
  let server: PostgresServer;
  /** A store with empty tables, which is copied for each test because creating the tables takes longer than most tests. */
  let template: string;
  before(async () => {
    server = await startPostgres();
    template = await server.database();
    const first = postgresStorage({ url: template, ...RESTRICTIONS });
    await first.open();
    await first.close();
  });
  after(() => server.stop());

  const create = async () => postgresUnderTest({ url: await server.database(template), poolSize: 4, ...RESTRICTIONS });

  storageSuite({ test: (name, fn) => void it(name, fn), create });
});
