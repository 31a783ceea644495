/** Facts from a real Postgres: inputs are values and never SQL, and nothing is written. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { createQuerySource, type QuerySource } from "../../../plugins/facts-postgres/query-source.ts";
import { HOSTILE_SETTINGS, setForRole } from "../../support/hostile-settings.ts";
import { createOverloads } from "../../support/postgres-overloads.ts";
import { startPgbouncer, withoutPgbouncer } from "../../support/pgbouncer.ts";
import { relay } from "../../support/relay.ts";
import { pause, until } from "../../support/wait.ts";
import { startPostgres, withoutPostgres, type PostgresServer } from "../../support/postgres.ts";

describe("a query source", { skip: withoutPostgres }, () => {
  let server: PostgresServer;
  let url: string;
  const open: QuerySource[] = [];
  before(async () => {
    server = await startPostgres();
    url = await server.database();
    await server.run(url, async (sql) => {
      await sql`create table accounts (id text, status text, daily_limit numeric, balance bigint, opened timestamptz)`;
      await sql`insert into accounts values
        ('a-1', 'open', 99.5, 7, '2026-01-15T10:00:00Z'), ('a-2', 'frozen', 1, 9007199254740993, now()), ('a-2', 'open', 1, 1, now())`;
    });
  });
  after(async () => {
    await Promise.all(open.map((source) => source.close()));
    await server.stop();
  });

  const source = (query: string, more: object = {}): QuerySource => {
    const created = createQuerySource("accounts", {
      url,
      query,
      inputs: ["id"],
      rows: "one",
      timeout_seconds: 5,
      max_age_seconds: 30,
      connections: 1,
      ...more,
    });
    open.push(created);
    return created;
  };
  const read = (query: string, id: string | number | boolean, more?: object) =>
    source(query, more).read({ id }, new AbortController().signal);

  test("returns the row as JSON, null without one, and a list where many are wanted", async () => {
    const query = "SELECT status, daily_limit, opened FROM public.accounts WHERE id = $1 -- by id";
    const row = (await read(query, "a-1")) as { status: string; daily_limit: number; opened: string };
    assert.deepEqual([row.status, row.daily_limit], ["open", 99.5]);
    assert.equal(Date.parse(row.opened), Date.parse("2026-01-15T10:00:00Z"));
    assert.equal(await read(query, "a-3"), null);
    const statuses = "SELECT status FROM public.accounts WHERE id = $1 ORDER BY status";
    assert.deepEqual(await read(statuses, "a-2", { rows: "many" }), [{ status: "frozen" }, { status: "open" }]);
    assert.deepEqual(await read("SELECT $1::int + 1 AS next", 41), { next: 42 });
  });

  test("a query receives inputs as values, whatever they contain", async () => {
    const query = "SELECT status FROM public.accounts WHERE id = $1";
    for (const id of ["' OR '1'='1", "a-1'; DROP TABLE accounts; --", "$1", "\\", "a-1' --"])
      assert.equal(await read(query, id), null, id);
    assert.deepEqual(await read(query, "a-1"), { status: "open" });
  });

  test("runs no operator, function or type of another user, whatever the search path is", async () => {
    const other = await server.database();
    await server.run(other, async (sql) => {
      await sql`create table accounts (id varchar(20), tenant name, balance numeric)`;
      await sql`insert into accounts values ('a-1', 't', 5), ('a-2', 't', 7)`;
      await sql`grant create on schema public to public`;
    });
    await server.run(other, async (sql) => {
      await sql`create role outsider`.catch(() => undefined);
      await sql`set role outsider`;
      await createOverloads(sql, "public", [
        "row_to_json(record) returns json",
        "left(text, int8) returns text",
        "count(int4) returns int8",
        "lower(varchar) returns text",
      ]);
    });
    const query = "SELECT id FROM public.accounts WHERE id = $1 AND tenant = $2 AND balance * 2 > 1 AND lower(id) = id";
    for (const path of [`"$user", public`, "public, pg_catalog"]) {
      await server.run(server.url, (sql) =>
        sql.unsafe(`alter database ${new URL(other).pathname.slice(1)} set search_path = ${path}`),
      );
      const safe = source(query, { url: other, inputs: ["id", "tenant"] });
      assert.deepEqual(await safe.read({ id: "a-1", tenant: "t" }, new AbortController().signal), { id: "a-1" }, path);
    }
    await assert.rejects(
      async () => read("SELECT status FROM accounts WHERE id = $1", "a-1"),
      /the query failed \(42P01\); name the schema of each table/,
    );
  });

  test("returns the same value whatever the settings of its role are, also after a pause", async () => {
    const query = `SELECT '\\x0001'::bytea AS bytes, 'a\\b' AS text, '2026-01-15T10:00:00Z'::timestamptz AS time, '2026-03-04'::date AS date,
      interval '1 day' AS wait, 0.1::float8 AS number, NULL = NULL AS nothing, '{NULL}'::text[] AS list WHERE $1 = 'a-1'`;
    const role = new URL(url);
    role.username = "hostile_reader";
    await server.run(url, async (sql) => {
      await sql`create role hostile_reader login`;
      // The time between two messages of a transaction is shorter, also on a busy machine.
      await setForRole(sql, "hostile_reader", { ...HOSTILE_SETTINGS, idle_in_transaction_session_timeout: "2s" });
    });
    const hostile = source(query, { url: role.href });
    const expected = await read(query, "a-1");
    for (let i = 0; i < 2; i++) {
      assert.deepEqual(await hostile.read({ id: "a-1" }, new AbortController().signal), expected);
      // Longer than the timeouts of the role.
      await pause(1500);
    }
  });

  test("passes inputs as text, which the query casts", async () => {
    const query = `SELECT $1::bool AS "bool", $2::jsonb AS "json", $3::date AS "date", $4::timestamp AS "time"`;
    const values = { bool: true, json: '{"a":[1]}', date: "2026-01-15", time: "2026-01-15 10:00" };
    assert.deepEqual(await source(query, { inputs: Object.keys(values) }).read(values, new AbortController().signal), {
      bool: true,
      json: { a: [1] },
      date: "2026-01-15",
      time: "2026-01-15T10:00:00",
    });
  });

  test("writes nothing, whatever the query is", async () => {
    await assert.rejects(
      async () =>
        read("WITH gone AS (DELETE FROM public.accounts WHERE id = $1 RETURNING id) SELECT id FROM gone", "a-1"),
      /the query failed/,
    );
    await assert.rejects(
      async () => read("SELECT setval(pg_get_serial_sequence('t', 'id'), 1) AS x, $1 AS y", "a"),
      /the query failed/,
    );
    assert.throws(() => source("SELECT 1; DROP TABLE accounts"), /semicolon/);
    assert.deepEqual(await read("SELECT count(*)::int AS n, $1 AS y FROM public.accounts", "a"), { n: 3, y: "a" });
  });

  test("has no answer for several rows, a number beyond 2^53, a failed cast and a slow query, and names no value", async () => {
    const many = { rows: "many" };
    const cases: [query: string, id: string, reason: RegExp, more?: object][] = [
      ["SELECT repeat('x', 70000) AS x, $1 AS y", "secret", /more than 65536 characters/],
      ["SELECT repeat('x', 30000) AS x, $1 AS y FROM public.accounts", "secret", /more than 65536 characters/, many],
      ["SELECT status FROM public.accounts WHERE id = $1", "a-2", /more than one row/],
      ["SELECT balance FROM public.accounts WHERE id = $1 AND status = 'frozen'", "a-2", /2\^53/],
      ["SELECT status FROM public.accounts WHERE daily_limit = $1::int", "secret", /the query failed \(22P02\)/],
      ["SELECT pg_sleep(60), $1 AS x", "secret", /the query failed \(57014\)/],
    ];
    for (const [query, id, reason, more] of cases)
      await assert.rejects(
        async () => read(query, id, { timeout_seconds: 1, ...more }),
        (error: Error) => reason.test(error.message) && !error.message.includes("secret"),
        query,
      );
  });

  test("closes only the connection of a read that was given up", async () => {
    const locks = source("SELECT pg_advisory_xact_lock($1::int)::text AS locked", { timeout_seconds: 10 });
    let other: Promise<unknown> = Promise.resolve();
    await server.run(url, (sql) =>
      sql.begin(async (tx) => {
        await tx`select pg_advisory_xact_lock(1), pg_advisory_xact_lock(2)`;
        const over = new AbortController();
        const given = locks.read({ id: 1 }, over.signal);
        other = locks.read({ id: 2 }, new AbortController().signal);
        await until("both wait", async () => {
          const [row] = await tx`select count(*)::int as n from pg_locks where locktype = 'advisory' and not granted`;
          return row?.["n"] === 2;
        });
        over.abort();
        await assert.rejects(given, /no answer in time/);
      }),
    );
    assert.deepEqual(await other, { locked: "" });
  });

  test("works behind a pooler of transactions, and keeps its timeout", { skip: withoutPgbouncer }, async () => {
    const address = new URL(url);
    const pooler = await startPgbouncer(address, "transaction");
    address.port = String(pooler.port);
    const pooled = { url: address.href, timeout_seconds: 1 };
    try {
      assert.deepEqual(await read("SELECT $1::int + 1 AS next", 41, pooled), { next: 42 });
      await assert.rejects(read("SELECT pg_sleep(60), $1 AS x", "a", pooled), /the query failed \(57014\)/);
    } finally {
      await Promise.all(open.map((each) => each.close()));
      await pooler.stop();
    }
  });

  test("connects at once after an outage, however many reads failed meanwhile", async () => {
    const address = new URL(url);
    const target = Number(address.port);
    let gate = await relay(target);
    await gate.stop();
    address.port = String(gate.port);
    const guarded = source("SELECT 1 AS x, $1 AS y", { url: address.href });
    const read = () => guarded.read({ id: "a" }, AbortSignal.timeout(10_000));
    for (let i = 0; i < 9; i++) await assert.rejects(read, /the query failed/);
    gate = await relay(target, undefined, gate.port);
    try {
      assert.equal(((await read()) as { x: number }).x, 1);
    } finally {
      await guarded.close();
      await gate.stop();
    }
  });

  test("an invalid address is an error at startup, which does not contain it", () => {
    for (const invalid of ["postgres://u:s3cret@ho st/db", "postgres://u:s3%zzcret@host/db"])
      assert.throws(
        () => source("SELECT 1", { url: invalid }),
        (error: Error) => /must be a valid address/.test(error.message) && !error.message.includes("s3"),
      );
  });

  test("recovers after a read was given up", async () => {
    const slow = source("SELECT pg_sleep(CASE WHEN $1 = 'slow' THEN 60 ELSE 0 END), 1 AS x", { timeout_seconds: 10 });
    const over = new AbortController();
    const given = slow.read({ id: "slow" }, over.signal);
    over.abort();
    await assert.rejects(given);
    assert.equal(((await slow.read({ id: "fast" }, new AbortController().signal)) as { x: number }).x, 1);
  });
});
