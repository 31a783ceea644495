/**
 * The storage contract on Postgres, on a database in which another login can create objects in the schema of the store:
 * operators and functions that fit the service's statements better than those of Postgres. Each of them fails, so that a
 * case that passes here also passes without them.
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { postgresStorage } from "../../plugins/storage-postgres/index.ts";
import { storageSuite } from "../../src/testing/index.ts";
import { createOverloads } from "../support/postgres-overloads.ts";
import { postgresUnderTest } from "../support/postgres-under-test.ts";
import { startPostgres, withoutPostgres, type PostgresServer } from "../support/postgres.ts";

/** Signatures that fit calls whose parameters Postgres declares as "any", or as other types. */
const FUNCTIONS = [
  "count(int8) returns int8",
  "count(text) returns int8",
  "concat(text, name) returns text",
  "concat_ws(text, int8, oid, oid) returns text",
  "format(text, int8) returns text",
  "format(text, name) returns text",
  "hashtextextended(text, int4) returns int8",
  "quote_ident(name) returns text",
  "to_regclass(varchar) returns regclass",
  "current_setting(varchar) returns text",
  "current_setting(varchar, bool) returns text",
  "set_config(varchar, varchar, bool) returns text",
  "json_to_recordset(text) returns setof record",
  "json_populate_recordset(entries, json) returns setof entries",
  "json_populate_recordset(actions, json) returns setof actions",
  "length(varchar) returns int4",
  "sum(varchar) returns int8",
];

describe("the storage contract on Postgres, beside a hostile login", { skip: withoutPostgres }, () => {
  let server: PostgresServer;
  let template: string;

  /** Creates overloads that the service may not execute, so that a statement which contains one fails, with or without rows. */
  const attack = (database: string, functions: readonly string[]): Promise<void> =>
    server.run(database, async (sql) => {
      await sql`alter default privileges revoke execute on functions from public`;
      await createOverloads(sql, "public", functions);
    });
  /** Returns the address of a database for a user that is no superuser. */
  const asService = async (database: string): Promise<string> => {
    await server.run(database, async (sql) => {
      await sql`create role service login`.catch(() => undefined);
      await sql`grant create on schema public to service`;
      await sql.unsafe(`grant create on database ${sql.options.database} to service`);
    });
    const url = new URL(database);
    url.username = "service";
    return url.href;
  };

  before(async () => {
    server = await startPostgres();
    template = await server.database();
    const first = postgresStorage({ url: await asService(template) });
    await first.open();
    await first.close();
    await attack(template, FUNCTIONS);
  });
  after(() => server.stop());

  const create = async () => postgresUnderTest({ url: await asService(await server.database(template)), poolSize: 4 });

  storageSuite({ test: (name, fn) => void it(name, fn), create });

  for (const path of [`"$user", public`, "public, pg_catalog"])
    it(`creates a store and inspects it, with the search path ${path}`, async () => {
      const database = await server.database();
      const url = await asService(database);
      await attack(
        database,
        FUNCTIONS.filter((signature) => !/entries|actions/.test(signature)),
      );
      const name = new URL(database).pathname.slice(1);
      await server.run(server.url, (sql) => sql.unsafe(`alter database ${name} set search_path = ${path}`));
      const storage = postgresStorage({ url });
      await storage.open();
      try {
        assert.deepEqual(await storage.inspect?.(), []);
      } finally {
        await storage.close();
      }
    });

  it("opens the store that exists, although a schema before it has tables of the same names", async () => {
    const url = await server.database(template);
    const name = new URL(url).pathname.slice(1);
    await server.run(url, async (sql) => {
      await sql`create schema other`;
      await sql`create table other.meta (name text, value text)`;
      await sql.unsafe(`alter database ${name} set search_path = other, public`);
    });
    const storage = postgresStorage({ url: await asService(url) });
    await storage.open();
    await storage.close();
    const [row] = await server.run(
      url,
      (sql) => sql`select count(*)::int4 as n from pg_class where relname = 'ledger_head'`,
    );
    assert.equal(row?.["n"], 1);
  });
});
