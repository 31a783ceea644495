/** A service with a role whose own settings differ from those that the service needs. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { postgresStorage } from "../../../plugins/storage-postgres/index.ts";
import { auditStore } from "../../../src/testing/index.ts";
import { HOSTILE_SETTINGS, setForRole } from "../../support/hostile-settings.ts";
import { startPgbouncer, withoutPgbouncer } from "../../support/pgbouncer.ts";
import { startPostgres, withoutPostgres, type PostgresServer } from "../../support/postgres.ts";
import { ALLOWED, startService } from "../../support/service.ts";
import { pause } from "../../support/wait.ts";

describe("a role with settings of its own", { skip: withoutPostgres }, () => {
  let server: PostgresServer;
  const roles: string[] = [];

  /** Creates a role that may create the store in a new database. Returns the address. */
  async function urlFor(role: string, settings = HOSTILE_SETTINGS, attributes = ""): Promise<string> {
    const url = await server.database();
    await server.run(url, async (sql) => {
      if (!roles.includes(role)) {
        roles.push(role);
        await sql.unsafe(`create role ${role} login ${attributes}`);
        await setForRole(sql, role, settings);
      }
      await sql.unsafe(`grant create on database ${new URL(url).pathname.slice(1)} to ${role}`);
      await sql.unsafe(`alter schema public owner to ${role}`);
    });
    const address = new URL(url);
    address.username = role;
    return address.href;
  }

  before(async () => {
    server = await startPostgres({ isPrivate: true });
  });
  after(() => server.stop());

  async function decidesAndAudits(url: string): Promise<void> {
    const service = await startService({ storage: () => postgresStorage({ url, poolSize: 2 }) });
    try {
      assert.equal((await service.call("POST", "/v1/actions", { body: ALLOWED })).body.status, "allowed");
      // Longer than the timeouts of the role.
      await pause(1500);
      assert.equal((await service.call("POST", "/v1/actions", { body: ALLOWED })).body.status, "allowed");
      await service.restart();
      assert.equal((await service.call("POST", "/v1/actions", { body: ALLOWED })).body.status, "allowed");
      assert.deepEqual(await service.storage.inspect?.(), []);
      assert.deepEqual((await auditStore(service.storage, service.runtime.host.ledger.vkey)).faults, []);
    } finally {
      await service.close();
    }
  }

  it("decides, restarts and audits", async () => decidesAndAudits(await urlFor("hostile")));

  it("decides, restarts and audits behind PgBouncer", { skip: withoutPgbouncer }, async () => {
    const url = new URL(await urlFor("hostile"));
    const bouncer = await startPgbouncer(url, "session", ["hostile"]);
    try {
      url.port = String(bouncer.port);
      await decidesAndAudits(url.href);
    } finally {
      await bouncer.stop();
    }
  });

  it("decides with an empty search path, and refuses one that names no schema", async () => {
    await decidesAndAudits(await urlFor("hardened", { search_path: "" }));
    const lost = postgresStorage({ url: await urlFor("lost", { search_path: "nowhere" }) });
    await assert.rejects(lost.open(), /search_path of this role names no schema that exists/);
    await lost.close();
  });

  it("a superuser enables the triggers again; another role is refused with the reason", async () => {
    const replica = { session_replication_role: "replica" };
    const allowed = postgresStorage({ url: await urlFor("root", replica, "superuser") });
    await allowed.open();
    await allowed.close();
    const refused = postgresStorage({ url: await urlFor("copier", replica) });
    await assert.rejects(
      refused.open(),
      /session_replication_role is replica for this role, which disables the triggers/,
    );
    await refused.close();
  });
});
