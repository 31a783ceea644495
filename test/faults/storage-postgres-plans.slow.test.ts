/** Postgres reads one row under the ledger's lock, even if one key submitted the same request very often. */
import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { postgresDialect } from "../../plugins/storage-sql/dialects/postgres.ts";
import { prepareReads } from "../../plugins/storage-sql/queries.ts";
import { postgresStorage } from "../../plugins/storage-postgres/index.ts";
import {
  actionRow,
  leafHashHex,
  idempotencyRow,
  HISTORY_SPAN,
  BASE_TIME,
  limitUseRow,
  pastActionRow,
} from "../../src/testing/suite/rows.ts";
import { startPostgres, withoutPostgres, type PostgresServer } from "../support/postgres.ts";

let server: PostgresServer | null = null;
before(async () => {
  if (withoutPostgres === false) server = await startPostgres();
});
after(() => server?.stop());

const COUNT = 20_000;
const OFTEN = leafHashHex("asked for again and again");
const MANY = "019a0000-0000-7000-8000-000012340001";

it(
  "joinable actions are searched among open actions, and rejections among rejected ones, whatever the planner's statistics are",
  { skip: withoutPostgres },
  async () => {
    assert.ok(server);
    const url = await server.database();
    const storage = postgresStorage({ url, poolSize: 2, acceptUnsafeServer: true });
    await storage.open();
    try {
      const asked = { submitted_by: MANY, request_hash: OFTEN };
      const waits = { ...asked, status: "pending_approval", decision: "require_approval" } as const;
      const rows = [
        actionRow(0, { ...asked, status: "succeeded" }),
        actionRow(COUNT + 1, { ...waits, expires_at: BASE_TIME + 50 }),
        actionRow(COUNT + 2, { ...waits, expires_at: BASE_TIME + 90 }),
        actionRow(COUNT + 3, { ...waits, expires_at: BASE_TIME + 90, submitted_by: `${MANY}0` }),
        actionRow(COUNT + 4, { ...waits, expires_at: BASE_TIME + 99, request_hash: leafHashHex("another") }),
        actionRow(COUNT + 5, { ...asked, status: "denied", rejection_until: BASE_TIME + 50 }),
        actionRow(COUNT + 6, { ...asked, status: "denied", rejection_until: BASE_TIME + 90 }),
        actionRow(COUNT + 7, {
          ...asked,
          status: "denied",
          rejection_until: BASE_TIME + 99,
          request_hash: leafHashHex("another"),
        }),
      ];
      await storage.write(async (tx) => {
        for (const row of rows) await tx.insertAction(row);
      });
      const { openAction, rejectedAction } = prepareReads(postgresDialect.db, postgresDialect);
      const statements = [
        ["waiting", openAction.waiting, /Index Scan Backward using actions_open_waiting/],
        ["approved", openAction.approved, /Index Scan Backward using actions_open_approved/],
        ["rejected", rejectedAction.submitted, /Index Scan Backward using actions_rejected on/],
        ["rejected_edit", rejectedAction.edited, /Index Scan Backward using actions_rejected_edits/],
      ] as const;
      const values: Record<string, string> = { ...asked, hash: OFTEN, now: String(BASE_TIME) };
      await server.run(url, async (sql) => {
        await sql.unsafe("set session_replication_role = replica");
        const columns = (await sql.unsafe(
          "select column_name as name from information_schema.columns where table_name = 'actions'",
        )) as unknown as { name: string }[];
        // Half of the actions have the same request.
        const own: Record<string, string> = {
          id: "'more-' || n",
          decision_seq: "n",
          effective_hash: "a.request_hash",
          request_hash: "case when n % 2 = 0 then a.request_hash else md5(n::text) || md5(n::text) end",
          submitted_by: "case when n % 2 = 0 then a.submitted_by else 'key-' || n end",
        };
        const list = (of: (name: string) => string): string => columns.map(({ name }) => of(name)).join(", ");
        await sql.unsafe(
          `insert into actions (${list((name) => `"${name}"`)}) select ${list((name) => own[name] ?? `a."${name}"`)} from generate_series(1, ${COUNT}) n, actions a where a.decision_seq = 0`,
        );
        await sql.unsafe("analyze actions");
        for (const [name, statement] of statements) await sql.unsafe(`prepare ${name} as ${statement.sql}`);
        for (const mode of ["force_generic_plan", "force_custom_plan"]) {
          await sql.unsafe(`set plan_cache_mode = ${mode}`);
          for (const [name, { names }, scan] of statements) {
            const plan = (await sql.unsafe(
              `explain (analyze, costs off, timing off) execute ${name}(${names.map((each) => `'${values[each]}'`).join(", ")})`,
            )) as unknown as { "QUERY PLAN": string }[];
            const steps = plan.map((row) => row["QUERY PLAN"]).join("\n");
            assert.match(steps, scan, mode);
            assert.doesNotMatch(steps, /Removed by Filter|Sort/, mode);
          }
        }
      });
      assert.deepEqual(await storage.openAction(MANY, OFTEN, BASE_TIME), rows[2]);
      assert.equal(await storage.openAction(MANY, OFTEN, BASE_TIME + 90), null);
      assert.deepEqual(await storage.rejectedAction(OFTEN, BASE_TIME), rows[6]);
      assert.equal(await storage.rejectedAction(OFTEN, BASE_TIME + 90), null);
      assert.equal(await storage.openAction(MANY, OFTEN.slice(0, -1), BASE_TIME), null);
    } finally {
      await storage.close();
    }
  },
);

/** Rows that one batch passes to each statement through `encodeRowsParameter`; null for a statement with single values. */
const GIVEN = {
  actionsById: [{ wanted: "action-1" }],
  idempotencies: [{ key_id: "key-1", route: "POST /v1/actions", idempotency_key: "1" }],
  limitsUsed: [{ n: 0, policy: "payments", limit_name: "refunds a day", subject: "agent-1", since: BASE_TIME }],
  foldedActions: [{ id: "action-1" }],
  pastActions: null,
  bucketsOf: [{ grain: 900_000, visible: "*", dimension: "tool", start: 0 }],
};

it(
  "the reads of a batch find each row through an index, even with a plan that was made when the tables were small",
  { skip: withoutPostgres },
  async () => {
    assert.ok(server);
    const url = await server.database();
    // On a loaded machine, preparing the rows of a transaction takes longer than the default.
    const storage = postgresStorage({ url, poolSize: 2, acceptUnsafeServer: true, silenceTimeoutMs: 60_000 });
    await storage.open();
    const reads = prepareReads(postgresDialect.db, postgresDialect);
    const statements = { ...reads, ...reads.sums };
    const names = Object.keys(GIVEN) as (keyof typeof GIVEN)[];
    const values: Record<string, string | number> = { ...HISTORY_SPAN, limit: 10 };
    const call = (name: keyof typeof GIVEN): string =>
      `execute "${name}"(${statements[name].names.map((each) => `'${GIVEN[name] === null ? values[each] : JSON.stringify(GIVEN[name])}'`).join(", ")})`;
    const insert = (from: number, to: number): Promise<void> =>
      storage.write(async (tx) => {
        for (let n = from; n < to; n++) {
          await tx.insertAction(actionRow(n));
          await tx.insertIdempotency(idempotencyRow(String(n)));
          await tx.insertLimitUse(limitUseRow(n, { subject: `agent-${n}` }));
          await tx.insertPastAction(pastActionRow(n));
        }
      });
    try {
      await insert(0, 30);
      await server.run(url, async (sql) => {
        // The tables are not analyzed, as in the first minutes of a store.
        for (const table of ["actions", "idempotency", "limit_uses", "past_actions", "action_sums"])
          await sql.unsafe(`alter table ${table} set (autovacuum_enabled = false)`);
        for (const name of names) await sql.unsafe(`prepare "${name}" as ${statements[name].sql}`);
        // From the sixth call on, Postgres can switch to a generic plan.
        for (let i = 0; i < 8; i++) for (const name of names) await sql.unsafe(call(name));
        await insert(30, 3_000);
        for (const name of names) {
          const plan = (await sql.unsafe(`explain (costs off) ${call(name)}`)) as unknown as { "QUERY PLAN": string }[];
          const steps = plan.map((row) => row["QUERY PLAN"]).join("\n");
          assert.match(steps, /Index Scan using/, name);
          assert.doesNotMatch(steps, /Hash Join|Hash Right Join|Merge|Seq Scan on (?!sums_state)/, `${name}: ${steps}`);
        }
      });
    } finally {
      await storage.close();
    }
  },
);
