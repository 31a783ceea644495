import assert from "node:assert/strict";
import test from "node:test";
import { readdirSync } from "node:fs";
import { measureCoverage } from "../../src/domain/policy/test/coverage.ts";
import { parsePolicyTests } from "../../src/domain/policy/parse/parse.ts";
import { runPolicyTest } from "../../src/domain/policy/test/run-tests.ts";
import { checkPolicyFolder } from "../../src/policies/folder.ts";
import { policy, rule } from "../support/policy.ts";
import { ROOT } from "../support/runtimes.ts";

const POLICIES = [
  policy("hours", [
    rule("at night", "deny", { when: "now.getHours() < 6", risk: "medium" }),
    rule("owner", "allow", { when: 'principal.owner == "ada" && principal.key_id == "test"' }),
    rule("others", "require_approval", { when: "has(params.n) && has(context.c)" }),
  ]),
  policy("second", [rule("nothing", "deny", { tool: "forbidden" })]),
];

function run(cases: string, head = ""): (string | null)[] {
  const { tests, faults } = parsePolicyTests(`now: 2026-01-15T10:00:00Z\n${head}cases:\n${cases}`, "x_test.yaml");
  assert.deepEqual(faults, []);
  return tests.flatMap((one) => runPolicyTest(POLICIES, one).map(({ failure }) => failure));
}

test("a case has its action, its clock and its principal", () => {
  assert.deepEqual(
    run(`
  - { name: a, action: { agent_id: a, tool: t, operation: o }, expect: { effect: deny, reason_code: NO_MATCHING_RULE } }
  - { name: b, action: { agent_id: a, tool: t, operation: o }, now: "2026-01-15T05:59:59Z", expect: { effect: deny, policy: hours, rule: at night, risk: medium, reason_code: POLICY_RULE } }
  - { name: c, action: { agent_id: a, tool: t, operation: o }, principal: { owner: ada }, expect: { effect: allow, rule: owner } }
  - { name: d, action: { agent_id: a, tool: t, operation: o, params: { n: 1 }, context: { c: 2 } }, expect: { effect: require_approval, rule: others } }
  - { name: e, action: { agent_id: a, tool: forbidden, operation: o }, principal: { owner: ada }, expect: { effect: deny, policy: second } }
`),
    [null, null, null, null, null],
  );
});

test("every expectation can fail, and reports the actual value", () => {
  const failing = (expect: string): string | null | undefined =>
    run(
      `  - { name: a, action: { agent_id: a, tool: t, operation: o }, now: "2026-01-15T05:00:00Z", expect: { ${expect} } }\n`,
    )[0];
  const why = ' (denied by rule "at night" of policy "hours")';
  assert.equal(failing("effect: deny"), null);
  assert.equal(failing("effect: allow"), `effect is deny, expected allow${why}`);
  assert.equal(failing("effect: deny, policy: second"), `policy is hours, expected second${why}`);
  assert.equal(failing("effect: deny, rule: owner"), `rule is at night, expected owner${why}`);
  assert.equal(
    failing("effect: deny, reason_code: CONDITION_ERROR"),
    `reason_code is POLICY_RULE, expected CONDITION_ERROR${why}`,
  );
  assert.equal(
    failing("effect: allow, risk: low"),
    `effect is deny, expected allow; risk is medium, expected low${why}`,
  );
});

test("a test can select some of the policies", () => {
  const one =
    "  - { name: a, action: { agent_id: a, tool: forbidden, operation: o }, principal: { owner: ada }, expect: { effect: allow } }\n";
  assert.deepEqual(run(one, "policies: [hours]\n"), [null]);
  assert.deepEqual(run(one, "policies: [hours, nope]\n"), ['there is no policy "nope" here']);
});

const FOLDER = `${ROOT}policies`;

test("the default set passes its tests, and they reach every rule", async () => {
  const { documents, results, faults } = await checkPolicyFolder(FOLDER);
  assert.deepEqual(faults, []);
  const { uncovered } = measureCoverage(
    documents.map(({ document }) => document),
    results.map(({ result }) => result),
  );
  assert.deepEqual(uncovered, []);
  for (const name of readdirSync(FOLDER).filter((one) => /^[a-z-]+\.yaml$/.test(one))) {
    assert.ok(
      results.some(({ file }) => file === name.replace(".yaml", "_test.yaml")),
      `${name} has no tests beside it`,
    );
  }
});

test("no rule of the default set is reached only by a failing condition", async () => {
  const { results } = await checkPolicyFolder(FOLDER);
  const failing = results.filter(({ result }) => result.decision?.reason_code.startsWith("CONDITION"));
  assert.deepEqual(
    failing.map(({ result }) => result.name),
    [],
  );
});

const ASKING = [
  policy("pay", [
    rule("large", "require_approval", {
      approval: { quorum: 2, expires_in: "4h", valid_for: "90m", rejection_holds: "none", notify: ["b", "a"] },
    }),
  ]),
  policy("tried", [rule("never", "deny")], { mode: "shadow" }),
];

function failureOf(expect: string): string | null | undefined {
  const text = `now: 2026-01-15T10:00:00Z\ncases:\n  - { name: a, action: { agent_id: a, tool: t, operation: o }, expect: { ${expect} } }\n`;
  const { tests, faults } = parsePolicyTests(text, "x_test.yaml");
  assert.deepEqual(faults, []);
  return tests.flatMap((one) => runPolicyTest(ASKING, one).map(({ failure }) => failure))[0];
}

test("a case can state the terms of the approval, and the answers of policies in shadow mode", () => {
  const approval =
    "approval: { quorum: 2, mode: maker_checker, expires_in: 240m, valid_for: 90m, rejection_holds: none, notify: [a, b] }";
  assert.equal(failureOf(`effect: require_approval, ${approval}, shadow: { tried: deny }`), null);
  const why = ' (sent for approval by rule "large" of policy "pay")';
  const wrong: [expect: string, difference: string][] = [
    ["approval: { quorum: 1 }", "approval.quorum is 2, expected 1"],
    ["approval: { mode: self_confirm }", "approval.mode is maker_checker, expected self_confirm"],
    ["approval: { expires_in: 5h }", "approval.expires_in is 4h, expected 5h"],
    ["approval: { valid_for: 1h }", "approval.valid_for is 90m, expected 1h"],
    ["approval: { rejection_holds: 24h }", "approval.rejection_holds is 0s, expected 24h"],
    ["approval: { notify: [a] }", "approval.notify is [a, b], expected [a]"],
    ["shadow: { tried: allow }", "shadow.tried is deny, expected allow"],
    ["shadow: { pay: deny }", "shadow.pay is no answer, expected deny"],
  ];
  for (const [expect, difference] of wrong)
    assert.equal(failureOf(`effect: require_approval, ${expect}`), `${difference}${why}`);
});

test("expected terms that no decision can have are faults with a position", () => {
  const faultOf = (expect: string): string[] =>
    parsePolicyTests(
      `now: 2026-01-15T10:00:00Z\ncases:\n  - name: a\n    action: { agent_id: a, tool: t, operation: o }\n    expect: { ${expect} }\n`,
      "x_test.yaml",
    ).faults.map(({ line, column, message }) => `${line}:${column} ${message}`);
  assert.deepEqual(faultOf("effect: allow, approval: { quorum: 2 }"), [
    '5:30 cases.0.expect.approval: the effect "allow" has no approval; remove it',
  ]);
  assert.deepEqual(faultOf("effect: require_approval, approval: { expires_in: 4 hours }"), [
    '5:65 cases.0.expect.approval.expires_in: "4 hours" is not a duration such as 30m, 1h or 7d',
  ]);
  assert.deepEqual(faultOf("effect: require_approval, approval: { quorom: 2 }"), [
    '5:53 cases.0.expect.approval.quorom: "quorom" is not recognized; did you mean "quorum"?',
  ]);
});
