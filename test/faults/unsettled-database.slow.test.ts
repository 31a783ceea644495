/**
 * After a database was replaced, and until the processes agree on its state, the service is not ready and decides
 * nothing.
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { postgresStorage } from "../../plugins/storage-postgres/index.ts";
import { SETTLED_INCARNATION_KEY } from "../../src/contract/storage.ts";
import { startPostgres, withoutPostgres, type PostgresServer } from "../support/postgres.ts";
import { ALLOWED, startService } from "../support/service.ts";
import { until } from "../support/wait.ts";

describe("a service whose database is not settled", { skip: withoutPostgres }, () => {
  let server: PostgresServer;
  before(async () => {
    server = await startPostgres();
  });
  after(() => server.stop());

  it("reports that it is not ready without waiting for the other processes, and is ready once they agree", async (t) => {
    const url = await server.database();
    const service = await startService({ storage: () => postgresStorage({ url, poolSize: 3 }) });
    t.after(() => service.close());
    const ready = () => service.call("GET", "/readyz", { key: null });
    assert.equal((await ready()).status, 200);
    // Another process has reported to this database that it has seen more entries than the database contains.
    await server.run(
      url,
      (client) => client`insert into processes (instance, incarnation, size, root, since, reported_at)
        select 'ahead', incarnation, size + 5, root, since, reported_at from processes limit 1`,
    );
    await service.storage.write((tx) => tx.putMeta(SETTLED_INCARNATION_KEY, "another database"));
    const { status, body } = await ready();
    assert.equal(status, 503);
    assert.equal(body.ready, false);
    assert.match(body.ledger.detail as string, /the processes have not yet agreed on the database,/);
    assert.equal((await service.call("POST", "/v1/actions", { body: ALLOWED })).status, 503);
    assert.equal((await ready()).status, 503);
    await server.run(url, (client) => client`delete from processes where instance = 'ahead'`);
    await until("it is ready again", async () => (await ready()).status === 200);
    assert.equal((await service.call("POST", "/v1/actions", { body: ALLOWED })).status, 200);
  });
});
