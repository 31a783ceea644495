/** Several processes start at once on one Postgres without a schema, or with slow migrations. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { postgresStorage } from "../../plugins/storage-postgres/index.ts";
import { startPostgres, withoutPostgres, type PostgresServer } from "../support/postgres.ts";
import { until } from "../support/wait.ts";

const SLOW = `create function slow() returns event_trigger language plpgsql as $$ begin perform pg_sleep(0.02); end $$`;

describe("migrations on Postgres", { skip: withoutPostgres }, () => {
  let server: PostgresServer;
  before(async () => {
    server = await startPostgres();
  });
  after(() => server.stop());

  it("other processes that start wait for a migration, longer than for the ledger's lock", async (t) => {
    const url = await server.database();
    await server.run(url, async (sql) => {
      await sql.unsafe(SLOW);
      await sql.unsafe("create event trigger slow on ddl_command_end execute function slow()");
    });
    // Each migration waits for several seconds.
    const storages = Array.from({ length: 6 }, () =>
      postgresStorage({ url, poolSize: 1, lockTimeoutMs: 200, statementTimeoutMs: 800 }),
    );
    t.after(() => Promise.all(storages.map((storage) => storage.close())));
    const starts = await Promise.allSettled(storages.map((storage) => storage.open()));
    assert.deepEqual(
      starts.map((start) => (start.status === "fulfilled" ? "open" : String(start.reason))),
      storages.map(() => "open"),
    );
    const schemas = await Promise.all(storages.map((storage) => storage.schema()));
    for (const { applied, known } of schemas) assert.equal(applied, known);
    await until("the sessions that made it, or waited for it, are closed", async () => {
      const [row] = await server.run(
        url,
        (sql) => sql<{ n: number }[]>`select count(*)::integer as n from pg_stat_activity
          where datname = current_database() and application_name = 'assent migration'`,
      );
      return row?.n === 0;
    });
  });
});
