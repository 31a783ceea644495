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

test("every expectation can fail, and says what was seen", () => {
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

test("a test may look at some of the policies only", () => {
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

test("in the default set no failing condition stands in for a rule", async () => {
  const { results } = await checkPolicyFolder(FOLDER);
  const failing = results.filter(({ result }) => result.decision?.reason_code.startsWith("CONDITION"));
  assert.deepEqual(
    failing.map(({ result }) => result.name),
    [],
  );
});
