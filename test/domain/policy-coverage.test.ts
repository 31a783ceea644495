/** A case covers a rule if the rule is its policy's answer, not if the rule is passed or fails. */
import assert from "node:assert/strict";
import test from "node:test";
import { measureCoverage, type Coverage } from "../../src/domain/policy/test/coverage.ts";
import { evaluateAllPolicies, decide } from "../../src/domain/policy/decide/decide.ts";
import { parsePolicyTests } from "../../src/domain/policy/parse/parse.ts";
import { runPolicyTest } from "../../src/domain/policy/test/run-tests.ts";
import type { PolicyDocument } from "../../src/domain/policy/policy-types.ts";
import { action, compile, FACTS, NOW, policy, rule } from "../support/policy.ts";

const POLICIES = [
  policy("crm", [
    rule("no amount", "deny", { when: "!has(params.amount)" }),
    rule("small", "allow", { when: "params.amount <= 100" }),
    rule("others", "require_approval"),
  ]),
  policy("freeze", [rule("nothing", "deny", { agent: "frozen-*" })]),
  policy("watch", [rule("seen", "require_approval", { operation: "update" })], { mode: "shadow" }),
];

function cover(cases: string, head = "", policies: PolicyDocument[] = POLICIES): Coverage {
  const { tests, faults } = parsePolicyTests(`now: 2026-01-15T10:00:00Z\n${head}cases:\n${cases}`, "x_test.yaml");
  assert.deepEqual(faults, []);
  return measureCoverage(
    policies,
    tests.flatMap((one) => runPolicyTest(policies, one)),
  );
}
const one = (params: string, agent = "a", effect = "deny"): string =>
  `  - { name: n, action: { agent_id: ${agent}, tool: crm, operation: update, params: ${params} }, expect: { effect: ${effect} } }\n`;
const uncovered = (coverage: Coverage): string[] =>
  coverage.uncovered.map(({ policy: name, rule: which }) => `${name}/${which}`);

test("rules are reached if they answer for their policy", () => {
  assert.deepEqual(uncovered(cover(one("{}"))), ["crm/small", "crm/others", "freeze/nothing"]);
  assert.deepEqual(uncovered(cover(one("{ amount: 5 }"))), ["crm/no amount", "crm/others", "freeze/nothing"]);
  const all = cover(one("{}") + one("{ amount: 5 }", "frozen-1") + one("{ amount: 101 }") + one("{ amount: 102 }"));
  assert.deepEqual(all.rules, [
    { policy: "crm", rule: "no amount", reached: 1, failed: 0, condition: { true: 1, false: 3 } },
    { policy: "crm", rule: "small", reached: 1, failed: 0, condition: { true: 1, false: 2 } },
    { policy: "crm", rule: "others", reached: 2, failed: 0, condition: null },
    { policy: "freeze", rule: "nothing", reached: 1, failed: 0, condition: null },
    { policy: "watch", rule: "seen", reached: 4, failed: 0, condition: null },
  ]);
  assert.deepEqual([all.uncovered, all.percent], [[], 100]);
});

test("a rule is reached even if another policy is stricter, or its own policy is in shadow mode", () => {
  const coverage = cover(one("{ amount: 5 }", "frozen-1"));
  assert.deepEqual(uncovered(coverage), ["crm/no amount", "crm/others"]);
  assert.equal(coverage.percent, 60);
});

test("a failing condition does not cover its rule", () => {
  const coverage = cover(one('{ amount: "5" }'));
  assert.deepEqual(
    coverage.uncovered.find(({ rule: which }) => which === "small"),
    { policy: "crm", rule: "small", reached: 0, failed: 1, condition: { true: 0, false: 0 } },
  );
});

test("a test of some policies counts only for those", () => {
  assert.deepEqual(uncovered(cover(one("{ amount: 5 }", "frozen-1"), "policies: [crm]\n")), [
    "crm/no amount",
    "crm/others",
    "freeze/nothing",
    "watch/seen",
  ]);
  assert.equal(cover(one("{}"), "policies: [nope]\n").percent, 0);
});

test("a rule after one that matches everything is reported, because no test can reach it", () => {
  const policies = [policy("p", [rule("all", "deny"), rule("never", "allow", { tool: "crm" })])];
  assert.deepEqual(uncovered(cover(one("{}") + one("{ amount: 5 }", "b"), "", policies)), ["p/never"]);
});

test("without rules the coverage is 100 %, and without cases 0 %", () => {
  assert.deepEqual(measureCoverage([], []), { rules: [], uncovered: [], percent: 100 });
  assert.equal(measureCoverage(POLICIES, []).percent, 0);
});

test("the decision is combined from the findings of the policies", () => {
  const compiled = compile(...POLICIES);
  const heard = (agent: string, params: { amount?: number | string }): string[] =>
    evaluateAllPolicies(compiled, action("crm", "update", params, agent), FACTS, NOW).map(
      (finding) => `${finding.policy.name}/${finding.rule.name} ${finding.effect} ${finding.reason_code}`,
    );
  assert.deepEqual(heard("a", { amount: 5 }), [
    "crm/small allow POLICY_RULE",
    "watch/seen require_approval POLICY_RULE",
  ]);
  assert.deepEqual(heard("frozen-1", { amount: "5" }), [
    "crm/small deny CONDITION_ERROR",
    "freeze/nothing deny POLICY_RULE",
    "watch/seen require_approval POLICY_RULE",
  ]);
  const decision = decide(compiled, action("crm", "update", { amount: "5" }, "frozen-1"), FACTS, NOW);
  assert.deepEqual(
    [decision.policy, decision.rule, decision.reason_code, decision.shadow.map(({ rule: which }) => which)],
    ["crm", "small", "CONDITION_ERROR", ["seen"]],
  );
  // A barred agent is denied before any policy is evaluated. The list still contains what the policies would have
  // answered.
  const barred = decide(
    compiled,
    action("crm", "update", { amount: 5 }),
    { ...FACTS, agent: { suspended: true, allowed_tools: null } },
    NOW,
  );
  assert.deepEqual([barred.reason_code, barred.shadow], ["AGENT_SUSPENDED", []]);
});
