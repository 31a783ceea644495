/** Cases for the list of approved actions. */
import assert from "./assert.ts";
import { actionRow, BASE_TIME, type DefineCase } from "./rows.ts";

export function approvedActionCases(test: DefineCase): void {
  test("approved actions are listed by deadline, without a gap if several have the same deadline", async ({
    storage,
  }) => {
    const ends = [30, 10, 20, 10, 40, 10, 20];
    await storage.write(async (tx) => {
      for (const [n, end] of ends.entries())
        await tx.insertAction(
          actionRow(n, { status: n === 4 ? "allowed" : "approved", approved_until: BASE_TIME + end }),
        );
      await tx.insertAction(actionRow(7, { status: "executing", approved_until: BASE_TIME + 15 }));
      await tx.insertAction(actionRow(8, { status: "approved", approved_until: null }));
    });
    const walk = async (from: number, limit: number): Promise<number[]> => {
      const walked: number[] = [];
      for (let after = { approved_until: from, decision_seq: Number.MAX_SAFE_INTEGER }; ;) {
        const page = await storage.approvedActions(after, limit);
        walked.push(...page.map((row) => row.decision_seq));
        const last = page.at(-1);
        if (last === undefined) return walked;
        after = { approved_until: last.approved_until ?? 0, decision_seq: last.decision_seq };
      }
    };
    for (const limit of [1, 2, 9]) {
      assert.deepEqual(await walk(BASE_TIME, limit), [1, 3, 5, 2, 6, 0]);
      assert.deepEqual(await walk(BASE_TIME + 10, limit), [2, 6, 0]);
    }
  });
}
