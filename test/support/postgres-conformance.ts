/** Tests the storage contract on Postgres. */
import { after, before, describe, it } from "node:test";
import { postgresStorage } from "../../plugins/storage-postgres/index.ts";
import { storageSuite } from "../../src/testing/index.ts";
import { postgresUnderTest } from "./postgres-under-test.ts";
import { startPostgres, withoutPostgres, type PostgresServer } from "./postgres.ts";

/** @param restrictions what the server must not use */
export function testOnPostgres(
  name: string,
  restrictions: Pick<Parameters<typeof postgresUnderTest>[0], "notify" | "statementTriggers">,
): void {
  describe(`the storage contract on ${name}`, { skip: withoutPostgres }, () => {
    let server: PostgresServer;
    /**
     * A store with empty tables, which is copied for each test because creating the tables takes longer than most
     * tests.
     */
    let template: string;
    before(async () => {
      server = await startPostgres();
      template = await server.database();
      const first = postgresStorage({ url: template, ...restrictions });
      await first.open();
      await first.close();
    });
    after(() => server.stop());

    const create = async () =>
      postgresUnderTest({ url: await server.database(template), poolSize: 4, ...restrictions });

    storageSuite({ test: (name, fn) => void it(name, fn), create });
  });
}
