/** The issuer runs no code of an action. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { connectTo, startIssuerServer, type IssuerServer } from "../../support/credential-issuer.ts";
import { createOverloads } from "../../support/postgres-overloads.ts";
import { withoutPostgres } from "../../support/postgres.ts";
import { until } from "../../support/wait.ts";

/** Signatures that fit the issuer's calls better than those of Postgres, whatever types its parameters have. */
const FUNCTIONS = [
  "pg_terminate_backend(int4, text) returns bool",
  "pg_terminate_backend(int4, int4) returns bool",
  "pg_terminate_backend(int8, int8) returns bool",
  "pg_has_role(name, text, text) returns bool",
  "pg_has_role(name, name, name) returns bool",
  "pg_has_role(text, text, text) returns bool",
  "has_schema_privilege(oid, oid, varchar) returns bool",
  "pg_identify_object(oid, oid, int4) returns text",
  "current_database() returns name",
  "current_setting(varchar) returns text",
  "format(text, name, text) returns text",
  "format(text, name, text, text) returns text",
  "now() returns timestamptz",
  "random() returns float8",
];

describe("an action that can create objects in a schema on the search path", { skip: withoutPostgres }, () => {
  let setup: IssuerServer;
  before(async () => {
    setup = await startIssuerServer();
    await setup.server.run(setup.database, async (sql) => {
      await sql`grant create on schema public to public`;
      await sql`create role mallory login password 'mallory-password'`;
    });
    await setup.as("mallory", "mallory-password", (sql) => createOverloads(sql, "public", FUNCTIONS));
  });
  after(() => setup.stop());

  for (const path of [`"$user", public`, "public, pg_catalog"])
    test(`runs nothing with the issuer's rights, with the search path ${path}`, async () => {
      const { server } = setup;
      const name = new URL(setup.database).pathname.slice(1);
      await server.run(server.url, (sql) => sql.unsafe(`alter database ${name} set search_path = ${path}`));
      const issuer = setup.issuerFor("reporting_reader");
      const issue = () => issuer.issue(setup.action(), AbortSignal.timeout(10_000));
      const used = await issue();
      const left = await issue();
      const open = connectTo(used.secret["url"] as string);
      await open`select`;
      await issuer.revoke(used.revocation as string);
      await open.end({ timeout: 1 });
      await server.run(server.url, (sql) => sql.unsafe(`alter role ${left.revocation} valid until '2020-01-01'`));
      issuer.startCleanup();
      await until("the old role is gone", async () => {
        assert.doesNotMatch(setup.logged.join(""), /an overload ran/);
        return !(await setup.roleExists(left.revocation as string));
      });
    });
});
