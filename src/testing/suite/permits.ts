/** Cases for lists of actions that can be started. */
import assert from "node:assert/strict";
import { actionRow, T0, type Case } from "./rows.ts";

export function permitCases(test: Case): void {
  test("what may start is walked by the end of its permit, without a gap where several end at once", async ({
    storage,
  }) => {
    const ends = [30, 10, 20, 10, 40, 10, 20];
    await storage.write(async (tx) => {
      for (const [n, end] of ends.entries())
        await tx.insertAction(actionRow(n, { status: n === 4 ? "approved" : "allowed", approved_until: T0 + end }));
      await tx.insertAction(actionRow(7, { status: "executing", approved_until: T0 + 15 }));
      await tx.insertAction(actionRow(8, { approved_until: null }));
    });
    const walk = async (status: "allowed" | "approved", from: number, limit: number): Promise<number[]> => {
      const walked: number[] = [];
      for (let after = { approved_until: from, decision_seq: Number.MAX_SAFE_INTEGER }; ;) {
        const page = await storage.startableActions(status, after, limit);
        walked.push(...page.map((row) => row.decision_seq));
        const last = page.at(-1);
        if (last === undefined) return walked;
        after = { approved_until: last.approved_until ?? 0, decision_seq: last.decision_seq };
      }
    };
    for (const limit of [1, 2, 9]) {
      assert.deepEqual(await walk("allowed", T0, limit), [1, 3, 5, 2, 6, 0]);
      assert.deepEqual(await walk("allowed", T0 + 10, limit), [2, 6, 0]);
      assert.deepEqual(await walk("approved", T0, limit), [4]);
    }
  });
}
