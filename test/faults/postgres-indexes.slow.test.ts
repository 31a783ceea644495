/** The audit reports a Postgres index that disagrees with its table, with and without the extension amcheck. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import postgres from "postgres";
import { postgresStorage } from "../../plugins/storage-postgres/index.ts";
import { startPostgres, withoutPostgres, type PostgresServer } from "../support/postgres.ts";

describe("indexes of Postgres", { skip: withoutPostgres }, () => {
  let server: PostgresServer;
  before(async () => {
    server = await startPostgres();
  });
  after(() => server.stop());

  for (const extension of [false, true])
    it(`are compared with their tables ${extension ? "by amcheck" : "without amcheck"}`, async (t) => {
      const url = await server.database();
      const storage = postgresStorage({ url });
      const client = postgres(url, { max: 1, onnotice: () => {} });
      try {
        if (extension) {
          const [available] = await client`select 1 from pg_available_extensions where name = 'amcheck'`;
          if (available === undefined) return t.skip("this server does not have it");
          await client`create extension amcheck`;
        }
        await storage.open();
        await storage.write((tx) => tx.putMeta("first", "1"));
        assert.deepEqual(await storage.inspect?.(), []);
        const [index] = await client`select indexrelid::regclass::text as name from pg_index
          where indrelid = 'meta'::regclass and indisprimary`;
        const setReady = (ready: boolean) =>
          client`update pg_index set indisready = ${ready} where indrelid = 'meta'::regclass and indisprimary`;
        await setReady(false);
        await client`set session_replication_role = replica`;
        await client`insert into meta (name, value) values ('second', '2')`;
        await setReady(true);
        const faults = (await storage.inspect?.()) ?? [];
        assert.equal(faults.length, 1, faults.join("\n"));
        assert.match(
          String(faults[0]),
          new RegExp(
            `the index ${String(index?.["name"])} of meta ${extension ? "is damaged" : "has 1 rows, but the table has 2"}`,
          ),
        );
      } finally {
        await client.end();
        await storage.close();
      }
    });
});
