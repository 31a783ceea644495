/** Which past actions histories have, for how long, and what conditions read of them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { decide } from "../../src/domain/policy/decide/decide.ts";
import { Evaluation } from "../../src/domain/policy/decide/evaluation.ts";
import {
  findHistoryMemberships,
  findHistoryReads,
  type HistoryRead,
  type PastActionRow,
  toHistoryFact,
} from "../../src/domain/policy/decide/history-facts.ts";
import { withGivenHistory } from "../../src/domain/policy/test/given-history.ts";
import { action, compile, FACTS, NOW, policy, rule } from "../support/policy.ts";

const DAY = 86_400_000;
const HISTORY = { per: "agent", window: "1h", max: 10 };
const compiled = (when: string) => compile(policy("p", [rule("a", "allow", { when })], { history: HISTORY }));

test("an action stays in its history as long as it can start, whatever its decision", () => {
  const evaluation = new Evaluation(compiled("history.any(h, true)"), action("pay", "out"), FACTS, NOW);
  for (const effect of ["allow", "require_approval"] as const)
    assert.equal(findHistoryMemberships(evaluation, effect)[0]?.until, NOW + 3_600_000 + 37 * DAY, effect);
});

test("an action that was denied after it waited may have run, because it can have been approved before", () => {
  const evaluation = new Evaluation(compiled("history.any(h, true)"), action("pay", "out"), FACTS, NOW);
  const [read] = findHistoryReads(evaluation) as [HistoryRead];
  const row: PastActionRow = {
    id: "1",
    agent_id: "support-1",
    tool: "pay",
    operation: "out",
    request: JSON.stringify(action("pay", "out")),
    effective: null,
    result: null,
    status: "denied",
    decision: "require_approval",
    reason_code: "POLICY_RULE",
    at: NOW,
    expires_at: null,
    approved_until: null,
    started_at: null,
    erased_at: null,
  };
  const rows = (["POLICY_RULE", "NO_LONGER_ALLOWED", "REVIEWER_DENIED"] as const).map((reason_code, i) => ({
    ...row,
    id: String(i),
    reason_code,
  }));
  const { actions } = toHistoryFact(read, rows, evaluation, "");
  assert.deepEqual(
    actions.map(({ may_have_run }) => may_have_run),
    [false, true, true],
  );
});

test("a sum adds finite numbers from 0 on, and is an error for others", () => {
  const sumOf = (number: string, amount: unknown): string => {
    const set = compiled(`history.sum(h, true, ${number}) <= 5.0`);
    const history = [amount, 2].map((value, i) => ({
      ago: `${i + 1}m`,
      tool: "pay",
      operation: "out",
      params: { amount: value },
    }));
    const request = action("pay", "out");
    const { effect, reason_code } = decide(set, request, withGivenHistory(set, request, FACTS, NOW, history), NOW);
    return effect === "allow" ? effect : reason_code;
  };
  for (const amount of [0, 3, 2.5]) assert.equal(sumOf("h.params.amount", amount), "allow");
  for (const amount of [-1, -0.5, "1", "NaN", true, null])
    assert.equal(sumOf("h.params.amount", amount), "CONDITION_ERROR", String(amount));
  assert.equal(sumOf("uint(h.params.amount)", 3), "allow");
  assert.equal(sumOf("double(h.params.amount)", "3.0"), "allow");
  for (const amount of ["NaN", "inf", "-3"])
    assert.equal(sumOf("double(h.params.amount)", amount), "CONDITION_ERROR", amount);
  assert.equal(sumOf("h.params.amount", 4), "NO_MATCHING_RULE");
});
