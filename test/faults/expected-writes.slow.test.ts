/**
 * Writes on Postgres that no job awaits. A failing statement fails every later one in its transaction, but only the job
 * that sent it must be rejected. Later jobs see writes whose results have not arrived.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { postgresStorage } from "../../plugins/storage-postgres/index.ts";
import type { LedgerTransaction } from "../../src/contract/ledger.ts";
import type { ActionRow } from "../../src/contract/storage.ts";
import type { ApprovalEntry } from "../../src/domain/entries.ts";
import { actionEntryFields, NON_VOTE_FIELDS } from "../../src/domain/open-actions.ts";
import type { JobTransaction } from "../../src/ledger/commit/job-transaction.ts";
import { actionRow, BASE_TIME } from "../../src/testing/suite/rows.ts";
import { entry, expectChange, openLedgerOn } from "../support/ledger.ts";
import { startPostgres, withoutPostgres, type PostgresServer } from "../support/postgres.ts";

let server: PostgresServer | null = null;
before(async () => {
  if (withoutPostgres === false) server = await startPostgres();
});
after(() => server?.stop());

const begin = (tx: LedgerTransaction, id: string, started_at = BASE_TIME): Promise<boolean> =>
  (tx as JobTransaction).changeAction(
    { id } as ActionRow,
    { status: "allowed" },
    { status: "executing", started_at, updated_at: BASE_TIME },
  );

/** The database rejects updates that set this start time, as many times as the test configures. */
const BAD = BASE_TIME + 1;

/**
 * Runs two jobs in one batch: a write of the first fails in the store, and the second reads after it. A rollback does
 * not reset the sequence that counts failures.
 */
async function behind(
  first: (tx: LedgerTransaction) => Promise<void>,
  { state = "22023", failures = 1000, jobMs = 60_000 },
): Promise<{ answers: string[]; statuses: unknown[] }> {
  const { database, run } = server as PostgresServer;
  const url = await database();
  const storage = postgresStorage({ url, poolSize: 2, acceptUnsafeServer: true });
  await storage.open();
  await storage.write(async (tx) => {
    for (const n of [1, 2]) await tx.insertAction(actionRow(n));
  });
  await run(url, (client) =>
    client.unsafe(`CREATE SEQUENCE failed;
      CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF nextval('failed') <= ${failures} THEN RAISE EXCEPTION 'it fails' USING ERRCODE = '${state}'; END IF;
        RETURN new;
      END $$;
      CREATE TRIGGER fail BEFORE UPDATE ON actions FOR EACH ROW WHEN (new.started_at = ${BAD}) EXECUTE FUNCTION fail()`),
  );
  const ledger = await openLedgerOn(storage, { jobMs });
  try {
    const settled = await Promise.allSettled([
      ledger.transact(async (tx) => first(tx).then(() => "answered")),
      ledger.transact(async (tx) => {
        await tx.action("action-2");
        expectChange(tx, begin(tx, "action-2"));
        return "answered";
      }),
    ]);
    return {
      answers: settled.map((one) => (one.status === "fulfilled" ? one.value : String(one.reason))),
      statuses: [(await storage.action("action-1"))?.status, (await storage.action("action-2"))?.status],
    };
  } finally {
    await ledger.close();
    await storage.close();
  }
}

test("a write that the store rejects makes only its own job fail", { skip: withoutPostgres }, async () => {
  const { answers, statuses } = await behind(
    async (tx) => Promise.resolve(expectChange(tx, begin(tx, "action-1", BAD))),
    {},
  );
  assert.match(answers[0] ?? "", /it fails/);
  assert.deepEqual([answers[1], statuses], ["answered", ["allowed", "executing"]]);
});

test("a conflict is retried, whichever job waits after it", { skip: withoutPostgres }, async () => {
  const { answers, statuses } = await behind(
    async (tx) => Promise.resolve(expectChange(tx, begin(tx, "action-1", BAD))),
    {
      state: "40001",
      failures: 2,
    },
  );
  assert.deepEqual(
    [answers, statuses],
    [
      ["answered", "answered"],
      ["executing", "executing"],
    ],
  );
});

test(
  "a write that hangs makes only its own job fail, whichever job waits after it",
  { skip: withoutPostgres },
  async () => {
    const { answers, statuses } = await behind(
      async (tx) => {
        const hangs = new Promise<boolean>(() => undefined);
        expectChange(tx, hangs);
        // Sends a read after a statement that waits for a row lock.
        const { action } = tx;
        Object.assign(tx, { action: async (id: string) => (await hangs, action(id)) });
        return Promise.resolve();
      },
      { jobMs: 300 },
    );
    assert.match(answers[0] ?? "", /did not end in time/);
    assert.deepEqual([answers[1], statuses], ["answered", ["allowed", "executing"]]);
  },
);

test(
  "a history that is read behind a rejection whose write is not awaited is not reported as altered",
  { skip: withoutPostgres },
  async () => {
    const storage = postgresStorage({
      url: await (server as PostgresServer).database(),
      poolSize: 2,
      acceptUnsafeServer: true,
    });
    await storage.open();
    const ledger = await openLedgerOn(storage);
    const until = Date.now() + 600_000;
    // Whether the read overtakes the result of the write depends on the connection, so try it some times.
    for (let n = 1; n <= 10; n++) {
      const row = actionRow(n, {
        status: "pending_approval",
        decision: "require_approval",
        quorum: 1,
        expires_at: until,
      });
      const place = { policy: "p", basis: "agent", subject: `agent-${n}` } as const;
      const span = { ...place, since: 0, limit: 10 };
      await ledger.transact(async (tx) => {
        tx.record(entry(1));
        await (tx as JobTransaction).insertAction(row);
        await tx.insertPastAction({ ...place, at: Date.now(), action_id: row.id, until });
      });
      assert.equal((await ledger.transact((tx) => tx.pastActions(span))).length, 1);
      const [, found] = await Promise.all([
        ledger.transact(async (tx) => {
          const stored = (await tx.action(row.id)) ?? assert.fail("the action is missing");
          tx.recordChange(stored, null, rejectionOf(stored, tx.now));
        }),
        ledger.transact(
          (tx) => tx.pastActions(span),
          () => ({ history: row.id }),
        ),
      ]);
      assert.deepEqual(
        found.map(({ status }) => status),
        ["denied"],
      );
    }
    await ledger.close();
    await storage.close();
  },
);

const rejectionOf = (row: ActionRow, now: number): ApprovalEntry => ({
  type: "approval",
  v: 1,
  ...actionEntryFields(row, now),
  ...NON_VOTE_FIELDS,
  verdict: "deny",
  by: { agent_id: null, key_id: "key-9", owner: null, principal: "key:key-9" },
  comment: null,
  approvals: 0,
  quorum: 1,
  status: "denied",
  approved_until: null,
  rejection_until: null,
});
