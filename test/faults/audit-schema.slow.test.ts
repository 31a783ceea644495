/** `assent audit` compares the schema with the schema that the migrations create. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { sqliteStorage } from "../../plugins/storage-sqlite/index.ts";
import { postgresStorage } from "../../plugins/storage-postgres/index.ts";
import { loadSqlite } from "../../plugins/storage-sqlite/load-library.ts";
import type { Storage } from "../../src/contract/storage.ts";
import { createRandom } from "../support/random.ts";
import { startPostgres, withoutPostgres, type PostgresServer } from "../support/postgres.ts";
import { storeFolder } from "./children/spawn.ts";

const { DatabaseSync } = await loadSqlite();

async function faultsOf(storage: Storage): Promise<string[]> {
  await storage.open({ readOnly: true });
  try {
    return (await storage.inspect?.()) ?? [];
  } finally {
    await storage.close();
  }
}

describe("the schema of SQLite", () => {
  async function newStore(): Promise<string> {
    const path = join(storeFolder(), "assent.db");
    const storage = sqliteStorage({ path });
    await storage.open();
    await storage.close();
    return path;
  }

  for (const [change, fault] of [
    ["drop trigger entries_no_update", "the schema has no trigger entries_no_update"],
    ["drop index actions_rejected", "the schema has no index actions_rejected"],
    [
      "create trigger quiet after insert on actions begin update actions set status = 'allowed'; end",
      "the schema has a trigger quiet that no migration created",
    ],
    [
      "drop trigger entries_no_delete; create trigger entries_no_delete before delete on entries begin select 1; end",
      "the trigger entries_no_delete of the schema was altered",
    ],
    ["alter table api_keys add column more text", "the table api_keys of the schema was altered"],
    ["create table more (n integer)", "the schema has a table more that no migration created"],
  ] as const)
    it(`${change} is a fault`, async () => {
      const path = await newStore();
      assert.deepEqual(await faultsOf(sqliteStorage({ path })), []);
      const db = new DatabaseSync(path);
      db.exec(change);
      db.close();
      assert.deepEqual(await faultsOf(sqliteStorage({ path })), [fault]);
    });

  it("with any flipped bit of a statement is reported as a fault, or the store does not open", async () => {
    const path = await newStore();
    const { random } = createRandom(7);
    const db = new DatabaseSync(path);
    const rows = db.prepare("select name, sql from sqlite_schema where sql is not null").all() as {
      name: string;
      sql: string;
    }[];
    db.close();
    const whole = readFileSync(path);
    // Longer statements continue on other pages of the file, where `indexOf` does not find them.
    const places = rows.map(({ name, sql }) => ({ name, sql, at: whole.indexOf(sql) })).filter(({ at }) => at >= 0);
    assert.ok(places.length > 50);
    for (let i = 0; i < 60; i++) {
      const { name, sql, at } = places[random(places.length)] as (typeof places)[0];
      const flipped = Buffer.from(whole);
      const place = at + random(sql.length);
      flipped[place] = (flipped[place] as number) ^ (1 << random(8));
      writeFileSync(path, flipped);
      const faults = await faultsOf(sqliteStorage({ path })).catch((error: unknown) => [String(error)]);
      assert.ok(faults.length > 0, `${name}: ${flipped.subarray(at, at + sql.length).toString("latin1")}`);
    }
    writeFileSync(path, whole);
    assert.deepEqual(await faultsOf(sqliteStorage({ path })), []);
  });
});

describe("the schema of Postgres", { skip: withoutPostgres }, () => {
  let server: PostgresServer | null = null;
  after(() => server?.stop());

  async function newStore(): Promise<string> {
    server ??= await startPostgres();
    const url = await server.database();
    const storage = postgresStorage({ url, poolSize: 1 });
    await storage.open();
    await storage.close();
    return url;
  }

  for (const [change, faults] of [
    [
      "alter table entries disable trigger entries_no_update",
      ["the trigger entries_no_update of entries of the schema was altered"],
    ],
    ["drop index actions_rejected", ["the schema has no index actions_rejected"]],
    [
      "create or replace function entries_no_delete() returns trigger language plpgsql as 'begin return old; end'",
      ["the function entries_no_delete of the schema was altered"],
    ],
    [
      "create function quiet() returns trigger language plpgsql as 'begin new.status = ''allowed''; return new; end'; create trigger quiet before insert on actions for each row execute function quiet()",
      [
        "the schema has a trigger quiet of actions that no migration created",
        "the schema has a function quiet that no migration created",
      ],
    ],
    ["alter table actions alter column status drop not null", ["the column actions.status of the schema was altered"]],
    [
      "alter table approvals drop constraint approvals_action_id",
      ["the schema has no constraint approvals_action_id of approvals"],
    ],
  ] as const)
    it(`${change.slice(0, 60)} is a fault`, async () => {
      const url = await newStore();
      assert.deepEqual(await faultsOf(postgresStorage({ url, poolSize: 1 })), []);
      await (server as PostgresServer).run(url, (sql) => sql.unsafe(change));
      assert.deepEqual(await faultsOf(postgresStorage({ url, poolSize: 1 })), faults);
    });

  it("is not compared for a role that cannot create a schema, and the fault says so", async () => {
    const url = await newStore();
    await (server as PostgresServer).run(url, (sql) =>
      sql.unsafe(
        `drop role if exists auditor; create role auditor login password 'auditor'; grant usage on schema public to auditor; grant select on all tables in schema public to auditor`,
      ),
    );
    const own = new URL(url);
    own.username = "auditor";
    own.password = "auditor";
    const faults = await faultsOf(postgresStorage({ url: own.href, poolSize: 1 }));
    assert.match(faults.join(), /^the schema was not compared, because this role cannot create one/);
  });
});
