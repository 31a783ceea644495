/**
 * Cases for lists of pending actions: which actions have expired at a time, and the order in which the others expire.
 */
import assert from "./assert.ts";
import type { ActionFilter, StoredVisibility } from "../../contract/storage.ts";
import { actionRow, BASE_TIME, type DefineCase } from "./rows.ts";

export function pendingActionCases(test: DefineCase): void {
  const everything: StoredVisibility = { all: true };

  test("overdue pending actions are listed, oldest expiry first", async ({ storage }) => {
    const pending = { status: "pending_approval", decision: "require_approval" } as const;
    await storage.write(async (tx) => {
      await tx.insertAction(actionRow(1, { ...pending, expires_at: BASE_TIME + 30 }));
      await tx.insertAction(actionRow(2, { ...pending, expires_at: BASE_TIME + 10 }));
      await tx.insertAction(actionRow(3, { ...pending, expires_at: BASE_TIME + 20 }));
      await tx.insertAction(actionRow(4, { ...pending, expires_at: BASE_TIME + 40 }));
      await tx.insertAction(actionRow(5, { status: "approved", expires_at: BASE_TIME }));
      await tx.insertAction(actionRow(6, pending));
    });
    const overdue = async (now: number, limit = 9): Promise<number[]> =>
      (await storage.overdueActions(now, limit)).map((row) => row.decision_seq);
    assert.deepEqual(await overdue(BASE_TIME + 9), []);
    assert.deepEqual(await overdue(BASE_TIME + 10), [2]);
    assert.deepEqual(await overdue(BASE_TIME + 30), [2, 3, 1]);
    assert.deepEqual(await overdue(BASE_TIME + 99, 2), [2, 3]);
    assert.deepEqual(await storage.overdueActions(BASE_TIME + 10, 1), [
      actionRow(2, { ...pending, expires_at: BASE_TIME + 10 }),
    ]);
    assert.equal(await storage.nextExpiry(), BASE_TIME + 10);
    for (const id of ["action-2", "action-3", "action-1", "action-4"]) {
      await storage.write((tx) =>
        tx.updateAction(id, { status: "pending_approval" }, { status: "expired", updated_at: BASE_TIME }),
      );
    }
    assert.deepEqual(await overdue(BASE_TIME + 99), []);
    assert.equal(await storage.nextExpiry(), null);
  });

  test("lists by status treat overdue actions as expired, even if their status has not been updated", async ({
    storage,
  }) => {
    const pending = { status: "pending_approval", decision: "require_approval" } as const;
    await storage.write(async (tx) => {
      await tx.insertAction(actionRow(1, { ...pending, expires_at: BASE_TIME + 30 }));
      await tx.insertAction(
        actionRow(2, { status: "expired", decision: "require_approval", expires_at: BASE_TIME + 5 }),
      );
      await tx.insertAction(actionRow(3, { ...pending, expires_at: BASE_TIME + 10, agent_id: "other" }));
      await tx.insertAction(actionRow(4, { status: "approved", expires_at: BASE_TIME }));
      await tx.insertAction(
        actionRow(5, { status: "expired", decision: "require_approval", expires_at: BASE_TIME + 7 }),
      );
    });
    const list = async (filter: Partial<ActionFilter>): Promise<number[]> =>
      (await storage.actions({ visibility: everything, limit: 9, ...filter })).map((row) => row.decision_seq);
    assert.deepEqual(await list({ status: "pending_approval" }), [3, 1]);
    assert.deepEqual(await list({ status: "expired" }), [5, 2]);
    for (const [as_of, waiting, over] of [
      [BASE_TIME + 9, [3, 1], [5, 2]],
      [BASE_TIME + 10, [1], [5, 3, 2]],
      [BASE_TIME + 30, [], [5, 3, 2, 1]],
    ] as const) {
      assert.deepEqual(await list({ status: "pending_approval", as_of }), waiting);
      assert.deepEqual(await list({ status: "expired", as_of }), over);
      assert.deepEqual(await list({ status: "expired", as_of, limit: 2, offset: 1 }), over.slice(1, 3));
      assert.deepEqual(
        await list({ status: "expired", as_of, before_seq: 5, visibility: { agent_id: "other" } }),
        over.filter((seq) => seq === 3),
      );
      assert.deepEqual(await list({ status: "approved", as_of }), [4]);
      assert.deepEqual(await list({ as_of, since: BASE_TIME, until: BASE_TIME + 99_999 }), await list({}));
    }
  });

  test("pending actions are counted, and listed by expiry without a gap if several expire at once", async ({
    storage,
  }) => {
    const pending = { status: "pending_approval", decision: "require_approval" } as const;
    const ends = [30, 10, 20, 10, 40, 10, 20];
    await storage.write(async (tx) => {
      for (const [n, end] of ends.entries())
        await tx.insertAction(
          actionRow(n, {
            ...pending,
            expires_at: BASE_TIME + end,
            agent_id: `agent-${n % 2}`,
            submitted_by: `key-${n % 3}`,
          }),
        );
      await tx.insertAction(actionRow(7, { status: "approved", expires_at: BASE_TIME + 10 }));
      await tx.insertAction(actionRow(8, pending));
    });
    const walk = async (visibility: StoredVisibility, from: number, limit: number): Promise<number[]> => {
      const walked: number[] = [];
      for (let after = { expires_at: from, decision_seq: Number.MAX_SAFE_INTEGER }; ;) {
        const page = await storage.pendingActions(visibility, after, limit);
        walked.push(...page.map((row) => row.decision_seq));
        const last = page.at(-1);
        if (last === undefined) return walked;
        after = { expires_at: last.expires_at ?? 0, decision_seq: last.decision_seq };
      }
    };
    for (const limit of [1, 2, 9]) {
      assert.deepEqual(await walk(everything, BASE_TIME, limit), [1, 3, 5, 2, 6, 0, 4]);
      assert.deepEqual(await walk(everything, BASE_TIME + 10, limit), [2, 6, 0, 4]);
      assert.deepEqual(await walk({ agent_id: "agent-1" }, BASE_TIME, limit), [1, 3, 5]);
      assert.deepEqual(await walk({ key_id: "key-0" }, BASE_TIME, limit), [3, 6, 0]);
    }
    assert.deepEqual(await storage.pendingActions(everything, { expires_at: BASE_TIME + 10, decision_seq: 3 }, 1), [
      actionRow(5, { ...pending, expires_at: BASE_TIME + 10, agent_id: "agent-1", submitted_by: "key-2" }),
    ]);
    assert.equal(await storage.pendingCount(everything, BASE_TIME), 7);
    assert.equal(await storage.pendingCount(everything, BASE_TIME + 10), 4);
    assert.equal(await storage.pendingCount({ agent_id: "agent-1" }, BASE_TIME), 3);
    assert.equal(await storage.pendingCount({ key_id: "key-9" }, BASE_TIME), 0);
    const created = (await storage.pendingActions(everything, { expires_at: BASE_TIME, decision_seq: 99 }, 99)).map(
      (row) => row.created_at,
    );
    assert.equal(await storage.oldestPending(BASE_TIME), Math.min(...created));
    assert.equal(await storage.oldestPending(Number.MAX_SAFE_INTEGER), null);
  });

  test("requests for approval are counted by key and time, newest first, with their hours", async ({ storage }) => {
    const HOUR = 3_600_000;
    const from = Math.ceil(BASE_TIME / HOUR) * HOUR;
    await storage.write(async (tx) => {
      const asked = { decision: "require_approval", submitted_by: "key-9" } as const;
      await tx.insertAction(actionRow(1, { ...asked, created_at: from }));
      await tx.insertAction(actionRow(2, { ...asked, created_at: from + HOUR - 1 }));
      await tx.insertAction(actionRow(3, { ...asked, created_at: from + HOUR }));
      await tx.insertAction(actionRow(4, { ...asked, status: "denied", created_at: from + 3 * HOUR }));
      await tx.insertAction(actionRow(5, { ...asked, submitted_by: "key-8", created_at: from }));
      await tx.insertAction(actionRow(6, { submitted_by: "key-9", created_at: from }));
    });
    const count = (since: number, until: number, most: number): Promise<unknown> =>
      storage.approvalRequests("key-9", since, until, most);
    assert.deepEqual(await count(from, from + 4 * HOUR, 9), { requests: 4, hours: 3 });
    assert.deepEqual(await count(from, from + 3 * HOUR, 9), { requests: 3, hours: 2 });
    assert.deepEqual(await count(from + 1, from + HOUR, 9), { requests: 1, hours: 1 });
    assert.deepEqual(await count(from, from + 4 * HOUR, 2), { requests: 2, hours: 2 });
    assert.deepEqual(await count(from, from, 9), { requests: 0, hours: 0 });
  });

  test("the next expiry follows the pending actions", async ({ storage }) => {
    assert.equal(await storage.nextExpiry(), null);
    const pending = { status: "pending_approval", decision: "require_approval" } as const;
    await storage.write((tx) => tx.insertAction(actionRow(1, { ...pending, expires_at: BASE_TIME + 10 })));
    await storage.write((tx) => tx.insertAction(actionRow(2, { ...pending, expires_at: BASE_TIME + 5 })));
    assert.equal(await storage.nextExpiry(), BASE_TIME + 5);
    await storage.write((tx) =>
      tx.updateAction("action-2", { status: "pending_approval" }, { status: "denied", updated_at: BASE_TIME }),
    );
    assert.equal(await storage.nextExpiry(), BASE_TIME + 10);
  });
}
