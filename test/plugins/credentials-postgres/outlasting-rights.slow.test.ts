/** Nothing that an action creates has rights of the action after its end. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type postgres from "postgres";
import { connectTo, startIssuerServer, type IssuerServer } from "../../support/credential-issuer.ts";
import { withoutPostgres } from "../../support/postgres.ts";

/** Objects that an action can create in the schema `$`, each with the query that finds it. */
const CODE: [kind: string, create: string[], find: string][] = [
  [
    "a function with its owner's rights",
    ["create function $.read_all() returns setof invoices language sql security definer as 'select * from invoices'"],
    "select 1 from pg_proc where proname = 'read_all'",
  ],
  [
    "a procedure",
    ["create procedure $.p() language sql security definer as 'select 1'"],
    "select 1 from pg_proc where proname = 'p'",
  ],
  [
    "an aggregate",
    ["create aggregate $.total(int4) (sfunc = int4pl, stype = int4)"],
    "select 1 from pg_proc where proname = 'total'",
  ],
  [
    "an aggregate with an order",
    [
      "create function $.last_of(int4[], float8) returns int4 language sql as 'select 1'",
      "create aggregate $.nth(float8 order by int4) (sfunc = array_append, stype = int4[], finalfunc = $.last_of)",
    ],
    "select 1 from pg_proc where proname = 'nth'",
  ],
  [
    "an operator with a function of Postgres",
    ["create operator $.= (leftarg = text, rightarg = text, function = pg_catalog.texticregexeq)"],
    "select 1 from pg_operator where oprname = '=' and oprcode = 'texticregexeq'::regproc",
  ],
  [
    "a cast with a function",
    [
      "create type $.mood as enum ('good')",
      "create function $.as_text($.mood) returns text language sql security definer as $f$ select 'x'::text $f$",
      "create cast ($.mood as text) with function $.as_text as implicit",
    ],
    "select 1 from pg_cast c join pg_proc p on p.oid = castfunc where proname = 'as_text'",
  ],
  [
    "a view, which reads with its owner's rights",
    ["create view $.all_invoices as select * from invoices", "grant select on $.all_invoices to public"],
    "select 1 from pg_class where relname = 'all_invoices'",
  ],
  [
    "a materialized view",
    ["create materialized view $.copied as select * from invoices"],
    "select 1 from pg_class where relname = 'copied'",
  ],
  [
    "a rule of a table, which writes with its owner's rights",
    [
      "create table $.inbox (id int)",
      "grant insert on $.inbox to public",
      "create rule forward as on insert to $.inbox do also insert into journal values (new.id)",
    ],
    "select 1 from pg_rewrite where rulename = 'forward'",
  ],
  [
    "a trigger on its own table",
    [
      "create table $.watched (id int)",
      "create function $.on_write() returns trigger language plpgsql security definer as $f$ begin return new; end $f$",
      "create trigger seen before insert on $.watched for each row execute function $.on_write()",
    ],
    "select 1 from pg_trigger where tgname = 'seen'",
  ],
  [
    "a trigger on another's table",
    [
      "create function $.spy() returns trigger language plpgsql as $f$ begin return new; end $f$",
      "create trigger spying before insert on journal for each row execute function $.spy()",
    ],
    "select 1 from pg_trigger where tgname = 'spying'",
  ],
  [
    "a default, a check and an index with a function",
    [
      "create function $.calls(int) returns int language plpgsql immutable as $f$ begin return 1; end $f$",
      "create table $.calling (id int default $.calls(1) check ($.calls(id) > 0))",
      "create index calling_index on $.calling ($.calls(id))",
    ],
    "select 1 from pg_proc where proname = 'calls' union all select 1 from pg_class where relname = 'calling_index'",
  ],
  [
    "a domain with a function",
    [
      "create function $.valid(text) returns bool language plpgsql as $f$ begin return true; end $f$",
      "create domain $.checked as text check ($.valid(value))",
    ],
    "select 1 from pg_proc where proname = 'valid' union all select 1 from pg_constraint where conname like 'checked%'",
  ],
  [
    "a conversion",
    ["create conversion $.conv for 'LATIN1' to 'UTF8' from iso8859_1_to_utf8"],
    "select 1 from pg_conversion where conname = 'conv'",
  ],
  [
    "a text search configuration",
    ["create text search configuration $.words (copy = english)"],
    "select 1 from pg_ts_config where cfgname = 'words'",
  ],
  [
    "statistics",
    ["create table $.counted (a int, b int)", "create statistics $.stats on a, b from $.counted"],
    "select 1 from pg_statistic_ext where stxname = 'stats'",
  ],
];

describe("what an action leaves behind", { skip: withoutPostgres }, () => {
  let setup: IssuerServer;
  const superuser = <T>(work: (sql: postgres.Sql) => Promise<T>): Promise<T> => setup.server.run(setup.database, work);
  const asMallory = <T>(work: (sql: postgres.Sql) => Promise<T>): Promise<T> =>
    setup.as("mallory", "mallory-password", work);
  before(async () => {
    setup = await startIssuerServer(["max_prepared_transactions=10"]);
    await superuser(async (sql) => {
      await sql`create role mallory login password 'mallory-password'`;
      await sql`create table journal (id int)`;
      await sql`grant insert, trigger on journal to reporting_reader`;
      await sql`grant usage on schema work to public`;
    });
  });
  after(() => setup.stop());

  for (const owner of ["the declared role", "the login role"])
    for (const [kind, create, find] of CODE)
      test(`${kind} of ${owner} is dropped`, async () => {
        const schema = owner === "the login role" ? "open_to_all" : "work";
        await setup.act(async (sql) => {
          if (owner === "the login role") await sql`set role none`;
          for (const statement of create) await sql.unsafe(statement.replaceAll("$.", `${schema}.`));
          assert.notEqual((await sql.unsafe(find)).length, 0);
        });
        assert.equal(await superuser(async (sql) => (await sql.unsafe(find)).length), 0);
        // The issuer issues again, so nothing outlasted the action.
        await setup.act(async (sql) => assert.equal((await sql`select id from invoices`).length, 1));
        assert.match(setup.logged.join(""), /dropped what an action left behind/);
      });

  test("a function in another database is dropped, and a table is kept", async () => {
    const other = await setup.server.database();
    await setup.server.run(other, (sql) => sql`grant create on schema public to public`);
    for (const statement of ["select 1", "set role none"]) {
      const { secret, revocation } = await setup.issue();
      const url = new URL(secret["url"] as string);
      url.pathname = new URL(other).pathname;
      const sql = connectTo(url.href);
      await sql.unsafe(statement);
      await sql`create function kept_rights() returns int language sql security definer as 'select 1'`;
      await sql`create table if not exists kept (id int)`;
      await sql.unsafe(`begin; create table prepared (id int); prepare transaction 'left'`);
      await sql.end({ timeout: 1 });
      await setup.issuer.revoke(revocation as string);
      assert.equal(await setup.roleExists(revocation as string), false);
      await setup.server.run(other, async (admin) => {
        assert.equal((await admin`select 1 from pg_proc where proname = 'kept_rights'`).length, 0);
        assert.equal((await admin`select 1 from pg_prepared_xacts`).length, 0);
        assert.equal((await admin`select * from kept`).length, 0);
      });
    }
  });

  test("code has no rights, even if its role cannot be dropped", async () => {
    const other = await setup.server.database();
    await setup.server.run(other, async (sql) => {
      await sql`grant create on schema public to public`;
      await sql`create table secrets (id int)`;
      await sql`grant select on secrets to reporting_reader`;
    });
    const { secret, revocation } = await setup.issue();
    const url = new URL(secret["url"] as string);
    url.pathname = new URL(other).pathname;
    const sql = connectTo(url.href);
    await sql`set role none`;
    await sql`create function read_secrets() returns setof secrets language sql security definer as 'select * from secrets'`;
    await sql.end({ timeout: 1 });
    await setup.server.run(other, (admin) =>
      admin.unsafe(`revoke connect on database ${admin.options.database} from public`),
    );
    await assert.rejects(setup.issuer.revoke(revocation as string), /in the database "assent_.*permission denied/);
    await setup.server.run(other, async (admin) => {
      await admin.unsafe(`grant connect on database ${admin.options.database} to mallory`);
    });
    const outside = new URL(other);
    outside.username = "mallory";
    outside.password = "mallory-password";
    const mallory = connectTo(outside.href);
    await assert.rejects(mallory`select read_secrets()`, /permission denied for table secrets/);
    await mallory.end({ timeout: 1 });
    await assert.rejects(setup.issue(), /in the database "assent_.*permission denied/);
    await setup.server.run(other, async (admin) => {
      await admin`drop owned by reporting_reader`;
      await admin`drop function read_secrets`;
    });
    await setup.issuer.revoke(revocation as string);
    assert.equal(await setup.roleExists(revocation as string), false);
  });

  test("default privileges for others are revoked", async () => {
    await setup.act(async (sql) => {
      await sql`alter default privileges grant select on tables to mallory`;
      await sql`alter default privileges in schema work grant all on sequences to public`;
      await sql`alter default privileges grant execute on functions to mallory`;
      await sql`set role none`;
      await sql`alter default privileges grant select on tables to mallory`;
    });
    await setup.act((sql) => sql`create table work.later (id int)`);
    await assert.rejects(
      asMallory((sql) => sql`select * from work.later`),
      /permission denied/,
    );
  });

  test("prepared transactions are rolled back", async () => {
    for (const statement of ["select 1", "set role none"])
      await setup.act(async (sql) => {
        await sql.unsafe(statement);
        await sql.unsafe("begin; create table open_to_all.prepared (id int); prepare transaction 'it''s \\ left'");
      });
    assert.equal(await superuser(async (sql) => (await sql`select 1 from pg_prepared_xacts`).length), 0);
  });

  test("data stays: tables, sequences, types, schemas and large objects", async () => {
    await setup.act(async (sql) => {
      await sql`create type work.status as enum ('open', 'closed')`;
      await sql`create table work.kept (id serial, status work.status default 'open', at timestamptz default now())`;
      await sql`insert into work.kept default values`;
      await sql`set role none`;
      await sql`create table open_to_all.kept (id int generated always as identity, body text check (body <> ''))`;
      await sql`select lo_from_bytea(4711, 'content')`;
      await sql`create temporary view passing as select 1`;
    });
    await setup.act(async (sql) => {
      assert.equal((await sql`select status from work.kept`)[0]?.["status"], "open");
      await sql`insert into open_to_all.kept (body) values ('a')`;
      assert.equal((await sql`select convert_from(lo_get(4711), 'UTF8') as content`)[0]?.["content"], "content");
    });
  });

  test("an overload of a function of Postgres gives no rights of the issuer", async () => {
    await superuser((sql) => sql`grant create on schema public to reporting_reader`);
    const { secret, revocation } = await setup.issue();
    const sql = connectTo(secret["url"] as string);
    for (const types of ["int, text", "int, int", "bigint, bigint"])
      await sql.unsafe(`create function public.pg_terminate_backend(${types}) returns bool language plpgsql as
        $f$ begin execute 'grant pg_execute_server_program to mallory'; return true; end $f$`);
    await setup.issuer.revoke(revocation as string);
    await sql.end({ timeout: 1 });
    const [row] = await superuser(
      (admin) => admin`select pg_has_role('mallory', 'pg_execute_server_program', 'member') as has`,
    );
    assert.equal(row?.["has"], false);
    assert.equal(await setup.roleExists(revocation as string), false);
  });

  test("a transaction that locks its own role cannot keep the login role or its connections", async () => {
    for (const end of ["", "; prepare transaction 'own role'"])
      for (const database of [setup.database, setup.server.url]) {
        const { secret, revocation } = await setup.issue();
        const url = new URL(secret["url"] as string);
        url.pathname = new URL(database).pathname;
        const sql = connectTo(url.href);
        await sql.unsafe(`begin; set local role none; alter role current_user password 'other'${end}`);
        await setup.issuer.revoke(revocation as string);
        await assert.rejects(sql`select 1`);
        await sql.end({ timeout: 1 });
        assert.equal(await setup.roleExists(revocation as string), false);
      }
  });

  test("code of an action stops working even if another user's transaction locks it", async () => {
    await superuser(async (sql) => {
      await sql`create schema pins authorization mallory`;
      await sql`grant select, insert on journal to mallory`;
    });
    const { secret, revocation } = await setup.issue();
    const sql = connectTo(secret["url"] as string);
    await sql.unsafe(`
      create view work.pinned as select * from invoices;
      grant select on work.pinned to public;
      create materialized view work.copied as select * from invoices;
      grant select (id) on work.copied to mallory;
      create function work.read_all() returns setof invoices language sql security definer as 'select * from invoices';
      create function work.spy() returns trigger language plpgsql as 'begin return new; end';
      create trigger spying before insert on journal for each row execute function work.spy();
      create table work.pinned_inbox (id int);
      grant insert, select on work.pinned_inbox to public;
      create rule forward as on insert to work.pinned_inbox do also insert into journal values (new.id);
      create function work.unpinned() returns int language sql security definer as 'select 1'`);
    await sql.end({ timeout: 1 });
    await asMallory(async (pins) => {
      await pins`create view pins.pin as select work.read_all()`;
      await pins.unsafe(`begin; select 1 from work.pinned; select id from work.copied; select 1 from work.pinned_inbox;
        select 1 from journal; select 1 from pins.pin`);
      await assert.rejects(setup.issuer.revoke(revocation as string), /lock timeout/);
      for (const [statement, error] of [
        ["select * from work.pinned", /permission denied/],
        ["select id from work.copied", /permission denied/],
        ["insert into work.pinned_inbox values (1)", /permission denied/],
        ["select work.read_all()", /cannot set parameter "role"/],
        ["insert into journal values (1)", /permission denied to set role/],
        ["select work.unpinned()", /does not exist/],
      ] as const)
        await assert.rejects(
          asMallory((other) => other.unsafe(statement)),
          error,
        );
    });
    await setup.issuer.revoke(revocation as string);
    assert.equal(await setup.roleExists(revocation as string), false);
    assert.equal(await superuser(async (admin) => (await admin`select 1 from pg_proc where prosecdef`).length), 0);
  });

  test("a function that is part of an extension is dropped", async () => {
    await superuser((sql) => sql.unsafe(`grant create on database ${sql.options.database} to reporting_reader`));
    await setup.act(async (sql) => {
      await sql`create extension hstore schema work`;
      await sql`create function work.hidden() returns int language sql security definer as 'select 1'`;
      await sql`alter extension hstore add function work.hidden()`;
    });
    assert.equal(await superuser(async (sql) => (await sql`select 1 from pg_proc where proname = 'hidden'`).length), 0);
  });

  test("a view of an action does not prevent the start of another one meanwhile", async () => {
    const first = await setup.issue();
    const sql = connectTo(first.secret["url"] as string);
    await sql`create view work.meanwhile as select 1`;
    await setup.act((other) => other`select 1`);
    await sql.end({ timeout: 1 });
    await setup.issuer.revoke(first.revocation as string);
  });
});

describe("a role that could pass its rights on", { skip: withoutPostgres }, () => {
  let setup: IssuerServer;
  before(async () => {
    setup = await startIssuerServer();
    await setup.server.run(setup.database, async (sql) => {
      await sql`create role mallory login password 'mallory-password'`;
      await sql`create role helper nologin`;
      await sql`create schema cron`;
    });
  });
  after(() => setup.stop());

  const REFUSED: [what: string, statements: string[], problem: RegExp][] = [
    ["can log in", ["alter role # login"], /# can log in/],
    ["is a superuser", ["alter role # superuser"], /# is a superuser/],
    ["may create roles", ["alter role # createrole"], /# may create roles/],
    ["may create databases", ["alter role # createdb"], /# may create databases/],
    ["may replicate", ["alter role # replication"], /# may replicate/],
    ["writes files", ["grant pg_write_server_files to #"], /pg_write_server_files reaches more than the database/],
    ["has such a role", ["alter role helper createrole", "grant helper to #"], /helper may create roles/],
    ["may grant a role", ["grant helper to # with admin option"], /# may grant helper to others/],
    [
      "may grant a right",
      ["grant select on salaries to # with grant option"],
      /# may grant SELECT to others; revoke its GRANT OPTION/,
    ],
    ["may grant a column", ["grant select (id) on salaries to # with grant option"], /# may grant SELECT to others/],
    ["may schedule", ["grant usage on schema cron to #"], /# may schedule jobs; revoke its USAGE on the schema cron/],
    [
      "configures the server",
      ["grant alter system on parameter archive_command to #"],
      /# may set archive_command for the whole server; revoke its ALTER SYSTEM/,
    ],
    ["owns the database", ["alter database $ owner to #"], /# owns the database/],
    [
      "owns a function",
      ["create function f() returns int language sql as 'select 1'", "alter function f() owner to #"],
      /# owns the function public.f\(\), which an action can change/,
    ],
    ["owns a view", ["create view v as select 1", "alter view v owner to #"], /# owns the view public.v/],
    [
      "owns a table with a rule",
      ["create table t (id int)", "create rule r as on insert to t do nothing", "alter table t owner to #"],
      /# owns the table public.t with the rule r/,
    ],
    [
      "has default privileges for others",
      ["alter default privileges for role # grant select on tables to mallory"],
      /# gives mallory default privileges/,
    ],
  ];
  for (const [i, [what, statements, problem]] of REFUSED.entries())
    test(`gets no login while it ${what}`, async () => {
      const role = `declared_${i}`;
      const fill = (text: string): string => text.replaceAll("#", role);
      await setup.server.run(setup.database, async (sql) => {
        await sql.unsafe(`create role ${role} nologin`);
        await sql.unsafe(`grant ${role} to issuer with admin option`);
        for (const statement of statements) await sql.unsafe(fill(statement).replaceAll("$", sql.options.database));
      });
      await assert.rejects(
        setup.issuerFor(role).issue(setup.action(), AbortSignal.timeout(10_000)),
        new RegExp(fill(`role "#" after its end: ${problem.source}`)),
      );
      await setup.server.run(setup.database, async (sql) => {
        await sql.unsafe(`reassign owned by ${role} to current_user; drop owned by ${role}; drop role ${role}`);
        await sql`alter role helper nocreaterole`;
      });
    });

  test("gets no login while it owns a function of another database", async () => {
    const other = await setup.server.database();
    await setup.server.run(other, async (sql) => {
      await sql`create function f() returns int language sql as 'select 1'`;
      await sql`alter function f() owner to reporting_reader`;
    });
    await assert.rejects(setup.issue(), /in the database "assent_.*reporting_reader owns the function public.f\(\)/);
    await setup.server.run(other, (sql) => sql`drop function f`);
    await setup.act((sql) => sql`select 1`);
  });
});
