/** Cases for actions and their votes. */
import assert from "./assert.ts";
import type { ActionStatus } from "../../domain/actions.ts";
import { ACTION_STATUSES } from "../../domain/actions.ts";
import { type ActionChange, type ActionGuard, type ActionRow } from "../../contract/storage.ts";
import { actionRow, approvalRow, fullActionRow, BASE_TIME, type DefineCase, isStorageError } from "./rows.ts";

export function actionCases(test: DefineCase): void {
  test("an action is returned as it was stored, with and without its optional members", async ({ storage, reopen }) => {
    await storage.write(async (tx) => {
      await tx.insertAction(actionRow(1));
      await tx.insertAction(fullActionRow(2));
    });
    const reopened = await reopen();
    assert.deepEqual(await reopened.action("action-1"), actionRow(1));
    assert.deepEqual(await reopened.action("action-2"), fullActionRow(2));
    assert.equal(await reopened.action("action-3"), null);
    assert.equal(await reopened.action("ACTION-1"), null);
    const ids = ["action-2", "action-3", "ACTION-1", "action-1"];
    const both = (await reopened.actionsById([...ids, ...ids])).sort((a, b) => a.decision_seq - b.decision_seq);
    assert.deepEqual(both, [actionRow(1), fullActionRow(2)]);
    assert.deepEqual(await reopened.actionsById(["action-3"]), []);
    assert.deepEqual(await reopened.actionsById([]), []);
  });

  test("every status can be stored", async ({ storage }) => {
    await storage.write(async (tx) => {
      for (const [n, status] of ACTION_STATUSES.entries()) await tx.insertAction(actionRow(n, { status }));
    });
    for (const [n, status] of ACTION_STATUSES.entries())
      assert.equal((await storage.action(`action-${n}`))?.status, status);
  });

  test("the id and the decision_seq of an action are unique", async ({ storage }) => {
    await storage.write((tx) => tx.insertAction(actionRow(1)));
    await assert.rejects(
      storage.write((tx) => tx.insertAction(actionRow(2, { id: "action-1" }))),
      isStorageError,
    );
    await assert.rejects(
      storage.write((tx) => tx.insertAction(actionRow(1, { id: "action-2" }))),
      isStorageError,
    );
    assert.deepEqual(await storage.actions({ visibility: { all: true }, limit: 9 }), [actionRow(1)]);
  });

  test("a request of 1 MiB is returned with every character", async ({ storage, reopen }) => {
    const request = 'ä😀\\"x'.repeat(128 * 1024);
    await storage.write((tx) => tx.insertAction(actionRow(1, { request, result: request })));
    const row = await (await reopen()).action("action-1");
    assert.equal(row?.request === request && row.result === request, true);
  });

  guardCases(test);
  voteCases(test);
}

/** Evaluates a guard. A second implementation, independent of the storage. */
function isGuardMet(row: ActionRow, guard: ActionGuard): boolean {
  return (
    row.status === guard.status &&
    (guard.expires_after === undefined || (row.expires_at !== null && row.expires_at > guard.expires_after)) &&
    (guard.expired_by === undefined || (row.expires_at !== null && row.expires_at <= guard.expired_by)) &&
    (guard.approved_after === undefined || (row.approved_until !== null && row.approved_until > guard.approved_after))
  );
}

function guardCases(test: DefineCase): void {
  test("a status change is applied only if every member of its guard matches, before, at and after each time", async ({
    storage,
  }) => {
    const times = [undefined, BASE_TIME - 1, BASE_TIME, BASE_TIME + 1];
    const rows = [
      actionRow(1, { expires_at: BASE_TIME, approved_until: BASE_TIME }),
      actionRow(2),
      actionRow(3, { expires_at: BASE_TIME }),
      actionRow(4, { approved_until: BASE_TIME }),
    ];
    await storage.write(async (tx) => {
      for (const row of rows) await tx.insertAction(row);
    });
    for (const row of rows) {
      for (const status of ["allowed", "approved"] as const) {
        for (const expires_after of times)
          for (const expired_by of times)
            for (const approved_after of times) {
              const guard: ActionGuard = {
                status,
                ...(expires_after === undefined ? {} : { expires_after }),
                ...(expired_by === undefined ? {} : { expired_by }),
                ...(approved_after === undefined ? {} : { approved_after }),
              };
              const back = new Error("the status changes back");
              await assert.rejects(
                storage.write(async (tx) => {
                  const said = JSON.stringify({
                    guard,
                    expires_at: row.expires_at,
                    approved_until: row.approved_until,
                  });
                  const changed = await tx.updateAction(row.id, guard, {
                    status: "executing",
                    updated_at: BASE_TIME + 9,
                  });
                  assert.equal(changed, isGuardMet(row, guard), said);
                  assert.deepEqual(
                    await tx.action(row.id),
                    changed ? { ...row, status: "executing", updated_at: BASE_TIME + 9 } : row,
                    said,
                  );
                  throw back;
                }),
                (error) => {
                  if (error !== back) throw error;
                  return true;
                },
              );
            }
      }
    }
  });

  test("the guards expires_after and approved_after are exclusive, and expired_by is inclusive", async ({
    storage,
  }) => {
    await storage.write(async (tx) => {
      await tx.insertAction(
        actionRow(1, { status: "pending_approval", expires_at: BASE_TIME, approved_until: BASE_TIME }),
      );
      const change: ActionChange = { status: "approved", updated_at: BASE_TIME };
      assert.equal(
        await tx.updateAction("action-1", { status: "pending_approval", expires_after: BASE_TIME }, change),
        false,
      );
      assert.equal(
        await tx.updateAction("action-1", { status: "pending_approval", approved_after: BASE_TIME }, change),
        false,
      );
      assert.equal(
        await tx.updateAction("action-1", { status: "pending_approval", expired_by: BASE_TIME - 1 }, change),
        false,
      );
      assert.equal(
        await tx.updateAction("action-1", { status: "pending_approval", expired_by: BASE_TIME }, change),
        true,
      );
    });
  });

  test("a change of an unknown action resolves to false", async ({ storage }) => {
    await storage.write(async (tx) => {
      await tx.insertAction(actionRow(1));
      assert.equal(
        await tx.updateAction("action-2", { status: "allowed" }, { status: "executing", updated_at: BASE_TIME }),
        false,
      );
      assert.equal(
        await tx.updateAction("", { status: "allowed" }, { status: "executing", updated_at: BASE_TIME }),
        false,
      );
    });
    assert.deepEqual(await storage.action("action-1"), actionRow(1));
  });

  const changes: Omit<ActionChange, "status" | "updated_at">[] = [
    {},
    { reason: "denied by a person" },
    { reason_code: "TOOL_NOT_ALLOWED" },
    { quorum: 4 },
    { approved_until: BASE_TIME + 6 },
    { started_at: BASE_TIME + 7 },
    { started_by: "key-7" },
    { result: '{"success":true}' },
    { approved_until: null, started_at: null, started_by: null, result: null },
    {
      reason: "",
      reason_code: "POLICY_RULE",
      past: "{}",
      quorum: 0,
      expires_at: 0,
      approved_until: 1,
      started_at: 2,
      started_by: "",
      result: "",
    },
  ];
  test("a change updates only the members that it contains, and no other action", async ({ storage }) => {
    await storage.write(async (tx) => {
      for (const n of changes.keys())
        await tx.insertAction({ ...fullActionRow(n), id: `action-${n}`, decision_seq: n });
    });
    for (const [n, change] of changes.entries()) {
      const before = await storage.actions({ visibility: { all: true }, limit: 99 });
      const full = { status: "approved", updated_at: BASE_TIME + 100 + n, ...change } as const;
      assert.equal(
        await storage.write((tx) => tx.updateAction(`action-${n}`, { status: "pending_approval" }, full)),
        true,
      );
      const after = await storage.actions({ visibility: { all: true }, limit: 99 });
      assert.deepEqual(
        after,
        before.map((row) => (row.id === `action-${n}` ? { ...row, ...full } : row)),
      );
    }
  });

  test("a second change is compared with the status that the first change set", async ({ storage }) => {
    const path: ActionStatus[] = ["pending_approval", "approved", "executing", "succeeded"];
    await storage.write((tx) => tx.insertAction(actionRow(1, { status: "pending_approval" })));
    for (const [i, status] of path.entries()) {
      const next = path[i + 1];
      if (next === undefined) break;
      const move = (): Promise<boolean> =>
        storage.write((tx) => tx.updateAction("action-1", { status }, { status: next, updated_at: BASE_TIME + i }));
      assert.deepEqual([await move(), await move()], [true, false]);
    }
    assert.equal((await storage.action("action-1"))?.status, "succeeded");
  });
}

function voteCases(test: DefineCase): void {
  test("a principal can vote only once on an action", async ({ storage, reopen }) => {
    const first = approvalRow("action-1", "user:dana", { reason: "fine", seq: 3 });
    const others = [
      approvalRow("action-1", "user:Dana", { approve: false, seq: 5 }),
      approvalRow("action-1", "key:key-2", { self_approval: true, on_behalf_of: "user:2", break_glass: true, seq: 4 }),
      approvalRow("action-2", "user:dana", { signed: true, seq: 6 }),
    ];
    await storage.write(async (tx) => {
      await tx.insertAction(actionRow(1));
      await tx.insertAction(actionRow(2));
      assert.equal(await tx.insertApproval(first), true);
      assert.equal(await tx.insertApproval({ ...first, approve: false, key_id: "key-3", seq: 9, reason: "no" }), false);
      for (const row of others) assert.equal(await tx.insertApproval(row), true);
    });
    assert.equal(await storage.write((tx) => tx.insertApproval({ ...first, approve: false, seq: 9 })), false);
    const reopened = await reopen();
    assert.deepEqual(await reopened.approvals("action-1"), [first, others[1], others[0]]);
    assert.deepEqual(await reopened.approvals("action-2"), [others[2]]);
    assert.deepEqual(await reopened.approvals("action-3"), []);
  });

  test("of many concurrent votes of one principal, only one is accepted", async ({ storage }) => {
    await storage.write((tx) => tx.insertAction(actionRow(1)));
    const counted = await Promise.all(
      Array.from({ length: 6 }, (_, i) =>
        storage.write((tx) => tx.insertApproval(approvalRow("action-1", "user:dana", { seq: i }))),
      ),
    );
    assert.equal(counted.filter(Boolean).length, 1);
    assert.equal((await storage.approvals("action-1")).length, 1);
  });

  test("a vote on an unknown action is rejected", async ({ storage }) => {
    await assert.rejects(
      storage.write((tx) => tx.insertApproval(approvalRow("action-1", "user:dana"))),
      isStorageError,
    );
    assert.deepEqual(await storage.approvals("action-1"), []);
  });
}
