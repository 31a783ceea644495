/** Cases for the past actions of histories. */
import assert from "./assert.ts";
import { MAX_PAST_REQUEST, StorageError, type PastActionRow } from "../../contract/storage.ts";
import { actionRow, HISTORY_SPAN, pastActionRow, BASE_TIME, type DefineCase } from "./rows.ts";

const idsOf = (rows: readonly PastActionRow[]): string[] => rows.map(({ id }) => id);

export function pastActionCases(test: DefineCase): void {
  test("a history contains the newest actions of its owner with their current columns", async ({ storage, reopen }) => {
    await storage.write(async (tx) => {
      for (const n of [1, 2, 3, 4, 5, 6, 7]) await tx.insertAction(actionRow(n));
      await tx.insertPastAction(pastActionRow(1));
      await tx.insertPastAction(pastActionRow(2));
      await tx.insertPastAction(pastActionRow(3, { at: BASE_TIME + 2 }));
      await tx.insertPastAction(pastActionRow(4, { subject: "owner-2" }));
      await tx.insertPastAction(pastActionRow(5, { basis: "fedcba9876543210" }));
      await tx.insertPastAction(pastActionRow(6, { policy: "other" }));
      // This action is not stored.
      await tx.insertPastAction(pastActionRow(9));
    });
    const reopened = await reopen();
    assert.deepEqual(idsOf(await reopened.pastActions({ ...HISTORY_SPAN, limit: 10 })), [
      "action-3",
      "action-2",
      "action-1",
    ]);
    assert.deepEqual(idsOf(await reopened.pastActions({ ...HISTORY_SPAN, since: BASE_TIME + 2, limit: 10 })), [
      "action-3",
      "action-2",
    ]);
    assert.deepEqual(idsOf(await reopened.pastActions({ ...HISTORY_SPAN, since: BASE_TIME + 3, limit: 10 })), []);
    const [row] = await reopened.pastActions({ ...HISTORY_SPAN, subject: "owner-2", limit: 10 });
    const { id, agent_id, tool, operation, status, decision, reason_code, request } = actionRow(4);
    const { expires_at, approved_until, started_at, erased_at, effective, result } = actionRow(4);
    const names = { id, agent_id, tool, operation, status, decision, reason_code, request, effective, result };
    assert.deepEqual(row, { ...names, at: pastActionRow(4).at, expires_at, approved_until, started_at, erased_at });
    await assert.rejects(
      reopened.write((tx) => tx.insertPastAction(pastActionRow(1))),
      (error) => error instanceof StorageError,
    );
  });

  test("a history omits requests and results that are too long", async ({ storage }) => {
    const request = "x".repeat(MAX_PAST_REQUEST + 1);
    await storage.write(async (tx) => {
      await tx.insertAction(actionRow(1, { request, result: request }));
      await tx.insertAction(actionRow(2, { request: request.slice(1), effective: request, result: request.slice(1) }));
      for (const n of [1, 2]) await tx.insertPastAction(pastActionRow(n));
    });
    const [second, first] = await storage.pastActions({ ...HISTORY_SPAN, limit: 10 });
    assert.deepEqual([first?.request, first?.effective, first?.result], [null, actionRow(1).effective, null]);
    assert.deepEqual([second?.request, second?.effective, second?.result], [request.slice(1), "", request.slice(1)]);
  });

  test("a transaction reads its own past actions, and moves, removes and prunes them", async ({ storage }) => {
    await storage.write(async (tx) => {
      for (const n of [1, 2, 3]) await tx.insertAction(actionRow(n));
      for (const n of [1, 2, 3]) await tx.insertPastAction(pastActionRow(n));
      await tx.insertPastAction(pastActionRow(1, { policy: "other" }));
      assert.deepEqual(idsOf(await tx.pastActions({ ...HISTORY_SPAN, limit: 1 })), ["action-3"]);
      await tx.removePastAction("action-1");
      await tx.removePastAction("action-9");
      assert.deepEqual(idsOf(await tx.pastActions({ ...HISTORY_SPAN, limit: 10 })), ["action-3", "action-2"]);
      await tx.movePastAction("action-2", BASE_TIME + 9);
      await tx.movePastAction("action-2", BASE_TIME + 5);
      const moved = await tx.pastActions({ ...HISTORY_SPAN, since: BASE_TIME + 9, limit: 10 });
      assert.deepEqual([idsOf(moved), moved.map(({ at }) => at)], [["action-2"], [BASE_TIME + 9]]);
    });
    assert.deepEqual(await storage.pastActions({ ...HISTORY_SPAN, policy: "other", limit: 10 }), []);
    assert.equal(await storage.write((tx) => tx.prunePastActions(BASE_TIME + 102, 10)), 0);
    assert.equal(await storage.write((tx) => tx.prunePastActions(BASE_TIME + 109, 1)), 1);
    assert.deepEqual(idsOf(await storage.pastActions({ ...HISTORY_SPAN, limit: 10 })), ["action-2"]);
    assert.equal(await storage.write((tx) => tx.prunePastActions(BASE_TIME + 108, 10)), 0);
  });
}
