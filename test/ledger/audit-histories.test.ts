/** What the audit says about the past actions that decisions read. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createRecordedHistoriesCheck } from "../../src/audit/recorded-histories.ts";
import { encodeSaltedFacts } from "../../src/domain/salted-facts.ts";
import type { PastAction } from "../../src/domain/policy/policy-types.ts";
import { memoryStorage } from "../../src/testing/index.ts";
import { actionRow } from "../../src/testing/suite/rows.ts";

test("the audit reports a past action that a decision read under another name, even if its row was restored", async () => {
  const storage = memoryStorage();
  await storage.open();
  await storage.write((tx) => tx.insertAction(actionRow(1)));
  const check = createRecordedHistoriesCheck(storage);
  const { id, agent_id, tool, operation, status } = actionRow(1);
  const faultsOf = async (change: Partial<PastAction>): Promise<string[]> => {
    const read: PastAction = {
      agent: agent_id,
      at: "2026-01-15T10:00:00.000Z",
      context: {},
      id,
      may_have_run: true,
      operation,
      params: {},
      status,
      tool,
      ...change,
    };
    const history = [{ policy: "p", basis: "0123456789abcdef", actions: [read], fault: null }];
    const faults: string[] = [];
    await check({ past: encodeSaltedFacts([{ history, salt: "11".repeat(32) }]) }, (fault) => void faults.push(fault));
    return faults;
  };
  assert.deepEqual(await faultsOf({}), []);
  for (const change of [{ agent: "other" }, { tool: "other" }, { operation: "other" }])
    assert.match((await faultsOf(change)).join(), /past action .* with another agent, tool or operation/);
  assert.match((await faultsOf({ id: "none" })).join(), /past action none, which is not in the store/);
});
