/** What a batch prefetches for its jobs, and how their writes change it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { JobTransaction } from "../../src/ledger/commit/job-transaction.ts";
import { memoryStorage } from "../../src/testing/index.ts";
import { actionRow, idempotencyRow, BASE_TIME, limitUseRow } from "../../src/testing/suite/rows.ts";
import { openLedgerOn } from "../support/ledger.ts";

const NAME = { key_id: "key-1", route: "POST /v1/actions", idempotency_key: "a" };
const SPAN = { policy: "payments", limit_name: "refunds a day", subject: "agent-1", since: BASE_TIME };
const CALLS = ["idempotency", "idempotencies", "limitUsed", "limitsUsed"].map((name) => `tx.${name}`);

async function opened({ exclusive = false } = {}) {
  // Only a store that other processes also write is prefetched.
  const storage = Object.assign(memoryStorage(), { exclusive });
  await storage.open();
  const ledger = await openLedgerOn(storage);
  return { storage, ledger, calls: () => CALLS.map((name) => storage.faults.calls(name)) };
}

test("rows are read once for all jobs of a batch, and each job sees earlier writes", async () => {
  const { storage, ledger, calls } = await opened();
  await storage.write((tx) => tx.insertLimitUse(limitUseRow(1, { amount: 5 })));
  const seen = await Promise.all(
    [2, 3, 4].map((n) =>
      ledger.transact(
        async (tx) => {
          const used = await tx.limitUsed(SPAN.policy, SPAN.limit_name, SPAN.subject, SPAN.since);
          const earlier = await tx.idempotency(NAME.key_id, NAME.route, NAME.idempotency_key);
          if (earlier === null) await tx.insertIdempotency(idempotencyRow("a", { resource_id: `action ${n}` }));
          await tx.insertLimitUse(limitUseRow(n, { amount: n }));
          return [used.count, used.sum, earlier?.resource_id ?? null];
        },
        () => ({ idempotency: NAME, limits: [SPAN] }),
      ),
    ),
  );
  assert.deepEqual(seen, [
    [1, 5, null],
    [2, 7, "action 2"],
    [3, 10, "action 2"],
  ]);
  assert.deepEqual(calls(), [0, 1, 0, 1]);
  await ledger.close();
});

test("the existence of actions is read once for all, and a new action is visible to later jobs", async () => {
  const { storage, ledger } = await opened();
  await storage.write((tx) => tx.insertAction(actionRow(1)));
  const calls = (): number[] => ["tx.actionsById", "tx.action"].map((name) => storage.faults.calls(name));
  const seen = await Promise.all(
    ["action-1", "action-2", "action-2", "action-3"].map((id) =>
      ledger.transact(
        async (tx) => {
          const row = await tx.action(id);
          if (id === "action-2" && row === null) await (tx as JobTransaction).insertAction(actionRow(2));
          return row?.id ?? null;
        },
        () => ({ history: id }),
      ),
    ),
  );
  assert.deepEqual(seen, ["action-1", null, "action-2", null]);
  assert.deepEqual(calls(), [1, 1]);
  await ledger.close();
});

test("a store with one process is read when a job needs it, and nothing is prefetched", async () => {
  const { ledger, calls } = await opened({ exclusive: true });
  const job = ledger.transact(
    (tx) => tx.limitUsed(SPAN.policy, SPAN.limit_name, SPAN.subject, SPAN.since),
    () => assert.fail("nothing is gained by it"),
  );
  assert.deepEqual(await job, { count: 0, sum: 0 });
  assert.deepEqual(calls(), [0, 0, 1, 0]);
  await ledger.close();
});

test("a failed prefetch refuses the jobs of the batch, and the next batch reads again", async () => {
  const { storage, ledger, calls } = await opened();
  let ran = 0;
  const submit = () =>
    ledger.transact(
      () => Promise.resolve(++ran),
      () => ({ idempotency: NAME }),
    );
  storage.faults.failNext("tx.idempotencies", "not-persisted");
  await assert.rejects(submit(), { name: "StorageError" });
  assert.equal(ran, 0);
  assert.equal(await submit(), 1);
  assert.deepEqual(calls(), [0, 2, 0, 0]);
  await ledger.close();
});

test("rows that no job prefetched are read when a job needs them", async () => {
  const { storage, ledger } = await opened();
  await storage.write((tx) => tx.insertLimitUse(limitUseRow(1, { amount: 5 })));
  const used = (span: typeof SPAN) =>
    ledger.transact(
      (tx) => tx.limitUsed(span.policy, span.limit_name, span.subject, span.since),
      () => ({ limits: [SPAN], idempotency: { ...NAME, idempotency_key: "another" } }),
    );
  assert.deepEqual(await used({ ...SPAN, since: BASE_TIME + 1_000_000 }), { count: 0, sum: 0 });
  assert.deepEqual(await used(SPAN), { count: 1, sum: 5 });
  const failing = ledger.transact(
    (tx) => tx.idempotency(NAME.key_id, NAME.route, NAME.idempotency_key),
    () => {
      throw new Error("it cannot say");
    },
  );
  assert.equal(await failing, null);
  await ledger.close();
});

test("uses that a job releases, and keys that it deletes, are not visible to later jobs", async () => {
  const { storage, ledger } = await opened();
  await storage.write(async (tx) => {
    await tx.insertLimitUse(limitUseRow(1));
    await tx.insertIdempotency(idempotencyRow("a"));
  });
  const [, seen] = await Promise.all([
    ledger.transact(
      async (tx) => {
        await tx.releaseLimitUses(limitUseRow(1).action_id);
        await tx.deleteIdempotency(NAME.key_id, NAME.route, NAME.idempotency_key);
      },
      () => ({ idempotency: NAME, limits: [SPAN] }),
    ),
    ledger.transact(async (tx) => [
      (await tx.limitUsed(SPAN.policy, SPAN.limit_name, SPAN.subject, SPAN.since)).count,
      await tx.idempotency(NAME.key_id, NAME.route, NAME.idempotency_key),
    ]),
  ]);
  assert.deepEqual(seen, [0, null]);
  await ledger.close();
});

test("writes of a job whose batch failed are not visible to the next run", async () => {
  const { ledger } = await opened();
  const bad = assert.rejects(
    ledger.transact(
      async (tx) => {
        await tx.insertLimitUse(limitUseRow(1));
        await tx.insertIdempotency(idempotencyRow("a"));
        throw new Error("a bug");
      },
      () => ({ idempotency: NAME, limits: [SPAN] }),
    ),
    /a bug/,
  );
  const good = ledger.transact(
    async (tx) => [
      (await tx.limitUsed(SPAN.policy, SPAN.limit_name, SPAN.subject, SPAN.since)).count,
      await tx.idempotency(NAME.key_id, NAME.route, NAME.idempotency_key),
    ],
    () => ({ idempotency: NAME, limits: [SPAN] }),
  );
  await bad;
  assert.deepEqual(await good, [0, null]);
  await ledger.close();
});
