/** Login roles on a real Postgres that checks passwords. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import postgres from "postgres";
import { createRoleIssuer, type RoleIssuer } from "../../../plugins/credentials-postgres/role-issuer.ts";
import type { ToolCredentialAction, IssuedToolCredential } from "../../../src/plugin.ts";
import { createLogger } from "../../../src/serve/log.ts";
import { setForRole } from "../../support/hostile-settings.ts";
import { startPostgres, withoutPostgres, type PostgresServer } from "../../support/postgres.ts";
import { until } from "../../support/wait.ts";

const HBA = `host all assent 127.0.0.1/32 trust
host all all 127.0.0.1/32 scram-sha-256
`;
const log = createLogger("error", () => undefined);
let n = 0;
const action = (): ToolCredentialAction => ({
  id: `0192f8a0-0000-7000-8000-${String(++n).padStart(12, "0")}`,
  agent_id: "bot",
  tool: "postgres",
  operation: "query",
  params: {},
});

describe("a login role", { skip: withoutPostgres }, () => {
  let server: PostgresServer;
  let database: string;
  let issuer: RoleIssuer;
  before(async () => {
    server = await startPostgres({ isPrivate: true, files: { "pg_hba.conf": HBA } });
    database = await server.database();
    await server.run(database, async (sql) => {
      await sql`create role reporting_reader nologin`;
      // The issuer is no superuser: what it may do is what docs/credentials.md tells operators to grant.
      await sql`create role issuer login createrole password 'issuer-password'`;
      await setForRole(sql, "issuer");
      await sql`grant reporting_reader to issuer with admin option`;
      await sql`create table invoices (id int)`;
      await sql`insert into invoices values (7)`;
      await sql`create table salaries (id int)`;
      await sql`grant select on invoices to reporting_reader`;
      await sql`create schema work authorization reporting_reader`;
      await sql`create schema open_to_all`;
      await sql`grant create, usage on schema open_to_all to public`;
    });
    const url = new URL(database);
    url.username = "issuer";
    url.password = "issuer-password";
    issuer = createRoleIssuer(
      "reports",
      {
        url: url.toString(),
        tools: ["postgres"],
        operations: ["*"],
        role: "reporting_reader",
        valid_seconds: 60,
        connections: 2,
      },
      log,
    );
  });
  after(async () => {
    await issuer.close();
    await server.stop();
  });

  const issue = (): Promise<IssuedToolCredential> => issuer.issue(action(), AbortSignal.timeout(10_000));
  const connect = (secret: IssuedToolCredential["secret"]): postgres.Sql =>
    postgres(secret["url"] as string, { max: 1, prepare: false, onnotice: () => undefined, connect_timeout: 5 });
  async function using<T>(secret: IssuedToolCredential["secret"], work: (sql: postgres.Sql) => Promise<T>): Promise<T> {
    const sql = connect(secret);
    try {
      return await work(sql);
    } finally {
      await sql.end({ timeout: 1 });
    }
  }
  const roleExists = (name: string): Promise<boolean> =>
    server.run(database, async (sql) => (await sql`select 1 from pg_roles where rolname = ${name}`).length > 0);

  test("has the rights of the declared role and no others", async () => {
    const { secret, revocation } = await issue();
    await using(secret, async (sql) => {
      assert.deepEqual([...(await sql`select id from invoices`)], [{ id: 7 }]);
      await assert.rejects(sql`select id from salaries`, /permission denied/);
      const [names] = await sql<{ session: string; current: string }[]>`
        select session_user::text as session, current_user::text as current`;
      assert.deepEqual(names, { session: revocation, current: "reporting_reader" });
      await assert.rejects(sql`create role another login`, /permission denied/);
    });
  });

  test("needs its password", async () => {
    const { secret } = await issue();
    const wrong = (secret["url"] as string).replace(secret["password"] as string, "wrong-password");
    await assert.rejects(
      using({ url: wrong }, (sql) => sql`select 1`),
      /password authentication failed/,
    );
  });

  test("is named after the action, expires, and its password is in no statement", async () => {
    const { id } = action();
    const { secret, expires_at } = await issuer.issue({ ...action(), id }, AbortSignal.timeout(10_000));
    assert.match(secret["user"] as string, new RegExp(`^assent_${id.replaceAll("-", "")}_[0-9a-f]{12}$`));
    await server.run(database, async (sql) => {
      const [role] = await sql<{ until: Date; limit: number; password: string }[]>`
        select rolvaliduntil as until, rolconnlimit as limit, rolpassword as password from pg_authid
        where rolname = ${secret["user"] as string}`;
      assert.deepEqual([role?.until.getTime(), role?.limit], [expires_at, 2]);
      assert.match(role?.password ?? "", /^SCRAM-SHA-256\$/);
    });
  });

  test("is dropped with its open connections, and again without an error", async () => {
    const { secret, revocation } = await issue();
    const open = connect(secret);
    await open`select 1`;
    const lost = assert.rejects(open`select pg_sleep(60)`);
    await issuer.revoke(revocation as string);
    await lost;
    await open.end({ timeout: 1 });
    assert.equal(await roleExists(revocation as string), false);
    await issuer.revoke(revocation as string);
  });

  test("leaves what it created to the declared role, also outside of it", async () => {
    const { secret, revocation } = await issue();
    await using(secret, async (sql) => {
      await sql`create table work.results (id int)`;
      await sql`reset role`;
      await sql`create table open_to_all.notes (id int)`;
    });
    await issuer.revoke(revocation as string);
    assert.equal(await roleExists(revocation as string), false);
    const owners = await server.run(
      database,
      (sql) => sql`select tablename, tableowner from pg_tables where tablename in ('notes', 'results') order by 1`,
    );
    assert.deepEqual(
      [...owners],
      [
        { tablename: "notes", tableowner: "reporting_reader" },
        { tablename: "results", tableowner: "reporting_reader" },
      ],
    );
  });

  test("that a crash left behind is dropped when its time is long over, and no other role is", async () => {
    const { revocation: live } = await issue();
    const { revocation: left } = await issue();
    const foreign = `assent_${"0".repeat(32)}_${"0".repeat(12)}`;
    await server.run(database, async (sql) => {
      await sql.unsafe(`alter role ${left} valid until '2020-01-01'`);
      // Named alike, but another issuer's: it is no member of the declared role.
      await sql.unsafe(`create role ${foreign} login valid until '2020-01-01'`);
    });
    issuer.startCleanup();
    await until("the old role is gone", async () => !(await roleExists(left as string)));
    assert.deepEqual([await roleExists(live as string), await roleExists(foreign)], [true, true]);
  });

  test("is not dropped by another name", async () => {
    for (const name of ["reporting_reader", 'x"; drop table invoices; --', ""])
      await assert.rejects(issuer.revoke(name), /is not a login role of this plugin/);
  });
});
