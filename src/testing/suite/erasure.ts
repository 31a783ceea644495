/** Cases for erasure: it clears only the columns whose content the ledger commits to. */
import assert from "./assert.ts";
import type { ActionStatus } from "../../domain/actions.ts";
import { actionRow, appendEntries, BASE_TIME, type DefineCase } from "./rows.ts";

const ERASED = {
  request: "",
  request_hash: "",
  salt: "",
  past: null,
  meta: null,
  questions: null,
  effective: null,
  effective_hash: null,
  result: null,
  erased_at: BASE_TIME + 9,
};

export function erasureCases(test: DefineCase): void {
  test("an erasure clears the request, past data, meta, questions and result, and nothing else", async ({
    storage,
    reopen,
  }) => {
    const overrides = {
      status: "succeeded",
      past: '{"limits":[],"salt":"00"}',
      meta: '{"meta":{"host":"h"},"salt":"00"}',
      result: '{"error":null}',
    } as const;
    await storage.write(async (tx) => {
      await appendEntries(tx, 3);
      for (const n of [0, 1, 2]) await tx.insertAction(actionRow(n, overrides));
      assert.equal(await tx.eraseAction("action-1", BASE_TIME + 9), true);
      assert.deepEqual(await tx.action("action-1"), { ...actionRow(1, overrides), ...ERASED });
    });
    const reopened = await reopen();
    assert.deepEqual(await reopened.action("action-1"), { ...actionRow(1, overrides), ...ERASED });
    for (const n of [0, 2]) assert.deepEqual(await reopened.action(`action-${n}`), actionRow(n, overrides));
    const all = { visibility: { all: true }, limit: 10 } as const;
    assert.deepEqual(
      (await reopened.actions(all)).map(({ id, request }) => [id, request]),
      [
        ["action-2", actionRow(2).request],
        ["action-1", ""],
        ["action-0", actionRow(0).request],
      ],
    );
    const span = { from_seq: 0, before_seq: 3, since: 0, until: BASE_TIME * 2 };
    assert.deepEqual(
      (await reopened.decisions({ ...all, ...span })).map(({ action_id, request, past }) => [action_id, request, past]),
      [
        ["action-2", actionRow(2).request, overrides.past],
        ["action-1", "", null],
        ["action-0", actionRow(0).request, overrides.past],
      ],
    );
  });

  test("a part of an action can be erased once, and everything else is unchanged", async ({ storage, reopen }) => {
    const overrides = {
      status: "succeeded",
      meta: '{"meta":{"host":"h"},"salt":"00"}',
      questions: "[]",
      result: '{"error":null}',
    } as const;
    await storage.write(async (tx) => {
      await appendEntries(tx, 3);
      for (const n of [0, 1]) await tx.insertAction(actionRow(n, overrides));
      await tx.insertAction(actionRow(2, { ...overrides, status: "pending_approval", expires_at: BASE_TIME }));
      assert.equal(await tx.eraseActionPart("action-1", "result"), true);
      assert.equal(await tx.eraseActionPart("action-1", "result"), false);
      assert.equal(await tx.eraseActionPart("action-1", "questions"), true);
      assert.equal(await tx.eraseActionPart("action-2", "result"), false);
      assert.equal(await tx.eraseActionPart("action-9", "result"), false);
      await tx.eraseAction("action-0", BASE_TIME);
      assert.equal(await tx.eraseActionPart("action-0", "meta"), false);
    });
    const reopened = await reopen();
    assert.deepEqual(await reopened.action("action-1"), { ...actionRow(1, overrides), result: null, questions: null });
    assert.equal((await reopened.action("action-2"))?.result, overrides.result);
  });

  test("a pending, erased or unknown action is not erased", async ({ storage }) => {
    const pending = actionRow(0, { status: "pending_approval", expires_at: BASE_TIME });
    await storage.write(async (tx) => {
      await appendEntries(tx, 2);
      await tx.insertAction(pending);
      await tx.insertAction(actionRow(1));
      assert.equal(await tx.eraseAction("action-0", BASE_TIME), false);
      assert.equal(await tx.eraseAction("action-2", BASE_TIME), false);
      assert.equal(await tx.eraseAction("action-1", BASE_TIME + 9), true);
      assert.equal(await tx.eraseAction("action-1", BASE_TIME + 10), false);
    });
    assert.deepEqual(await storage.action("action-0"), pending);
    assert.equal((await storage.action("action-1"))?.erased_at, BASE_TIME + 9);
  });

  test("an erased action can get digests in place of its hashes, and a rejection is found by them", async ({
    storage,
    reopen,
  }) => {
    const digests = { request_hash: "a1".repeat(32), effective_hash: "b2".repeat(32), salt: "c3".repeat(32) };
    const rejected = actionRow(0, { status: "denied", rejection_until: BASE_TIME + 9 });
    const change = { status: "denied", updated_at: rejected.updated_at, ...digests } as const;
    await storage.write(async (tx) => {
      await appendEntries(tx, 1);
      await tx.insertAction(rejected);
      assert.equal(await tx.eraseAction("action-0", BASE_TIME + 9), true);
      assert.equal(await tx.updateAction("action-0", { status: "denied" }, change), true);
    });
    const reopened = await reopen();
    const row = { ...rejected, ...ERASED, ...digests };
    for (const digest of [digests.request_hash, digests.effective_hash])
      assert.deepEqual(await reopened.rejectedAction(digest, BASE_TIME), row);
    assert.equal(await reopened.rejectedAction(rejected.request_hash, BASE_TIME), null);
  });

  test("an erasure in a failed transaction erases nothing", async ({ storage }) => {
    await storage.write(async (tx) => {
      await appendEntries(tx, 1);
      await tx.insertAction(actionRow(0));
    });
    await assert.rejects(
      storage.write(async (tx) => {
        await tx.eraseAction("action-0", BASE_TIME);
        throw new Error("no");
      }),
      /^Error: no$/,
    );
    assert.deepEqual(await storage.action("action-0"), actionRow(0));
  });

  test("actions in every state except pending can be erased", async ({ storage }) => {
    const states: ActionStatus[] = ["allowed", "denied", "approved", "expired", "cancelled", "executing", "failed"];
    await storage.write(async (tx) => {
      await appendEntries(tx, states.length);
      for (const [n, status] of states.entries()) {
        await tx.insertAction(actionRow(n, { status }));
        assert.equal(await tx.eraseAction(`action-${n}`, BASE_TIME), true, status);
      }
    });
  });
}
