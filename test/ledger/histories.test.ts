/** What a batch prefetches for existing actions, and writes that no job awaits. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { Refusal } from "../../src/contract/errors.ts";
import type { LedgerTransaction } from "../../src/contract/ledger.ts";
import type { JobTransaction } from "../../src/ledger/commit/job-transaction.ts";
import { type ActionRow, StorageError, nullIfCorrupt } from "../../src/contract/storage.ts";
import { memoryStorage } from "../../src/testing/index.ts";
import { actionRow, keyRow, BASE_TIME } from "../../src/testing/suite/rows.ts";
import { entry, expectChange, openLedgerOn } from "../support/ledger.ts";

const READS = ["actionsById", "entriesOfAction", "key"] as const;

async function opened() {
  // Only a store that other processes also write is prefetched.
  const storage = Object.assign(memoryStorage(), { exclusive: false });
  await storage.open();
  await storage.write(async (tx) => {
    for (const n of [1, 2])
      await tx.insertAction(actionRow(n, { submitted_by: "key-1", approved_until: Date.now() + 600_000 }));
    await tx.insertKey(keyRow(1));
  });
  const ledger = await openLedgerOn(storage);
  const calls = (): number[] => READS.map((name) => storage.faults.calls(`tx.${name}`));
  const history = (id: string) => () => ({ history: id });
  const statusOf = async (id: string): Promise<string | undefined> => (await storage.action(id))?.status;
  return { storage, ledger, calls, history, statusOf };
}

const aboutOne = (at: number) => ({
  type: "execution" as const,
  v: 1 as const,
  action_id: "action-1",
  agent_id: "agent-1",
  at: new Date(at).toISOString(),
  commitment: "ab".repeat(32),
  phase: "start" as const,
  by: { agent_id: null, key_id: "key-1", owner: null, principal: "key:key-1" },
  permit: null,
  attempt: null,
  success: null,
  result: null,
  comment: null,
  status: "executing" as const,
});

const begin = (tx: LedgerTransaction, id: string): Promise<boolean> =>
  (tx as JobTransaction).changeAction(
    { id } as ActionRow,
    { status: "allowed" },
    { status: "executing", started_at: BASE_TIME, updated_at: BASE_TIME },
  );

test("actions, their entries and their submitters' keys are read once for all jobs", async () => {
  const { ledger, calls, history } = await opened();
  const seen = await Promise.all(
    ["action-1", "action-1", "action-2", "action-3"].map((id) =>
      ledger.transact(async (tx) => {
        const row = await tx.action(id);
        const key = row === null ? null : await tx.key(row.submitted_by);
        return [row?.id, (await tx.entriesOfAction(id)).length, key?.id];
      }, history(id)),
    ),
  );
  assert.deepEqual(seen, [
    ["action-1", 0, "key-1"],
    ["action-1", 0, "key-1"],
    ["action-2", 0, "key-1"],
    [undefined, 0, undefined],
  ]);
  // The entries of each action, and no more.
  assert.deepEqual(calls(), [1, 3, 1]);
  await ledger.close();
});

test("a job sees what earlier jobs of the batch wrote about the action, its entry and its key", async () => {
  const { storage, ledger, history } = await opened();
  const first = ledger.transact(async (tx) => {
    const row = await tx.action("action-1");
    assert.ok(row?.status === "allowed");
    tx.recordChange(row, null, aboutOne(tx.now));
    await (tx as JobTransaction).revokeKey("key-1", BASE_TIME + 5);
    // A job's changes to its own copy of the row have no effect.
    Object.assign(row, { status: "denied" });
  }, history("action-1"));
  const second = ledger.transact(
    async (tx) => [
      (await tx.action("action-1"))?.status,
      (await tx.entriesOfAction("action-1")).map(({ type }) => type),
      (await tx.key("key-1"))?.revoked_at,
    ],
    history("action-1"),
  );
  await first;
  assert.deepEqual(await second, ["executing", ["execution"], BASE_TIME + 5]);
  assert.equal((await storage.entriesOfAction("action-1")).length, 1);
  await ledger.close();
});

test("each write about an action or a key is visible to later jobs", async () => {
  const writes: [(tx: LedgerTransaction) => Promise<unknown>, (tx: LedgerTransaction) => Promise<unknown>, unknown][] =
    [
      [
        (tx) => tx.noteAsked("action-1", BASE_TIME + 9, null),
        async (tx) => (await tx.action("action-1"))?.asked_at,
        BASE_TIME + 9,
      ],
      [
        (tx) => (tx as JobTransaction).eraseAction("action-1", BASE_TIME + 9),
        async (tx) => (await tx.action("action-1"))?.erased_at,
        BASE_TIME + 9,
      ],
      [(tx) => tx.touchKey("key-1", BASE_TIME + 9), async (tx) => (await tx.key("key-1"))?.last_used_at, BASE_TIME + 9],
    ];
  for (const [write, read, expected] of writes) {
    const { ledger, history } = await opened();
    const done = ledger.transact(write, history("action-1"));
    assert.equal(await ledger.transact(read, history("action-1")), expected);
    await done;
    await ledger.close();
  }
});

test("unreadable bytes fail only their own action, and the others are decided", async () => {
  const { storage, ledger, history } = await opened();
  const { write } = storage;
  // As a bundle of entries reports it: no statement has failed.
  storage.write = (work) =>
    write((tx) => {
      const { entriesOfAction } = tx;
      const altered = (id: string) =>
        id === "action-1"
          ? Promise.reject(new StorageError("corrupt", "it was altered"))
          : entriesOfAction.call(tx, id);
      return work(Object.assign(tx, { entriesOfAction: altered }));
    });
  const read = (id: string) => ledger.transact((tx) => nullIfCorrupt(tx.entriesOfAction(id)), history(id));
  assert.deepEqual(await Promise.all(["action-1", "action-2"].map(read)), [null, []]);
  await ledger.close();
});

test("if the store cannot be read, the batch is refused and none of it is stored", async () => {
  for (const name of READS) {
    const { storage, ledger, history, statusOf } = await opened();
    storage.faults.failNext(`tx.${name}`, "not-persisted");
    const start = ledger.transact(async (tx) => expectChange(tx, begin(tx, "action-1")), history("action-1"));
    await assert.rejects(start, { name: "StorageError" });
    assert.equal(await statusOf("action-1"), "allowed");
    await ledger.close();
  }
});

test("a write that changes nothing fails its own job only, whichever job ran after it", async () => {
  const { ledger, statusOf } = await opened();
  const runs: string[] = [];
  const failing = assert.rejects(
    ledger.transact(async (tx) => {
      runs.push("failing");
      // It is allowed, and does not wait.
      expectChange(
        tx,
        (tx as JobTransaction).changeAction(
          { id: "action-1" } as ActionRow,
          { status: "pending_approval" },
          { status: "executing", updated_at: BASE_TIME },
        ),
      );
      return Promise.resolve();
    }),
    /did not change/,
  );
  const good = ledger.transact(async (tx) => {
    runs.push("good");
    expectChange(tx, begin(tx, "action-2"));
    return Promise.resolve("answered");
  });
  await failing;
  assert.equal(await good, "answered");
  assert.deepEqual(runs, ["failing", "good", "good"]);
  assert.deepEqual([await statusOf("action-1"), await statusOf("action-2")], ["allowed", "executing"]);
  await ledger.close();
});

test("a write that is not awaited is stored before its job is answered, or the batch fails", async () => {
  const { ledger, statusOf } = await opened();
  let answer: (changed: boolean) => void = () => undefined;
  const late = new Promise<boolean>((resolve) => (answer = resolve));
  let isWaiting = (): void => undefined;
  const waiting = new Promise<void>((resolve) => (isWaiting = resolve));
  const job = ledger.transact(async (tx) => {
    await begin(tx, "action-1");
    expectChange(tx, late);
    isWaiting();
  });
  let ended = false;
  void job.then(() => (ended = true));
  await waiting;
  // A job that is answered too early is answered within a few turns, because the store is in memory.
  for (let turns = 0; turns < 20; turns++) await setImmediate();
  assert.deepEqual([ended, await statusOf("action-1")], [false, "allowed"]);
  answer(true);
  await job;
  assert.equal(await statusOf("action-1"), "executing");
  const broken = ["action-2", "action-1"].map((id) =>
    ledger.transact(async (tx) => {
      expectChange(
        tx,
        id === "action-2" ? begin(tx, id) : Promise.reject(new StorageError("unavailable", "it is gone")),
      );
      return Promise.resolve();
    }),
  );
  for (const one of broken) await assert.rejects(one, /it is gone/);
  assert.equal(await statusOf("action-2"), "allowed");
  await ledger.close();
});

test("a refusal after a pending write undoes the write", async () => {
  const { ledger, statusOf } = await opened();
  const job = ledger.transact(async (tx) => {
    expectChange(tx, begin(tx, "action-1"));
    return Promise.reject(new Refusal("ACTION_NOT_STARTABLE", "it changed its mind"));
  });
  await assert.rejects(job, /changed its mind/);
  assert.equal(await statusOf("action-1"), "allowed");
  await ledger.close();
});

test("a write that is passed after its batch has ended is refused, without an unhandled rejection", async (t) => {
  const { ledger, statusOf } = await opened();
  const strays: unknown[] = [];
  const note = (error: unknown): void => void strays.push(error);
  process.on("unhandledRejection", note);
  t.after(() => process.off("unhandledRejection", note));
  let view: LedgerTransaction | null = null;
  await ledger.transact((tx) => Promise.resolve(void (view = tx)));
  const tx = view as unknown as LedgerTransaction;
  assert.throws(
    () => expectChange(tx, Promise.reject(new StorageError("unavailable", "the transaction is over"))),
    /has ended/,
  );
  await setImmediate();
  assert.deepEqual(strays, []);
  assert.equal(await statusOf("action-1"), "allowed");
  await ledger.close();
});

test("a row that a job writes after it has ended is refused, and is not committed with the batch", async () => {
  const { storage } = await opened();
  let view: LedgerTransaction | null = null;
  const errors: unknown[] = [];
  const ledger = await openLedgerOn(storage, {
    origin: "late.example",
    // Runs between the last job and the commit.
    async outbox() {
      await (async () => view?.putMeta("late", "written"))().catch((error: unknown) => errors.push(error));
    },
  });
  await ledger.transact((tx) => {
    view = tx;
    tx.record(entry(1));
    return Promise.resolve();
  });
  assert.match(String(errors[0]), /the batch has ended/);
  assert.equal(await storage.meta("late"), null);
  await ledger.close();
});
