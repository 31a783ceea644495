/** `approval.grants`: where grants are possible, and how large. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { decide } from "../../src/domain/policy/decide/decide.ts";
import { buildPolicySet, compilePolicySet } from "../../src/domain/policy/compile/compile.ts";
import { validatePolicyDocument } from "../../src/domain/policy/parse/parse.ts";
import type { ApprovalTerms, Facts, PolicyDocument, Risk } from "../../src/domain/policy/policy-types.ts";

const GRANTS = { for: "8h", count: 50 };
const NOW = Date.parse("2026-03-02T10:00:00Z");
const FACTS: Facts = { principal: { key_id: "k", name: "agent", agent_id: "bot", owner: null } };
const ACTION = { agent_id: "bot", tool: "ci", operation: "deploy", params: {}, context: {} };

const policy = (name: string, approval: ApprovalTerms, risk?: Risk): PolicyDocument => ({
  policy: name,
  rules: [{ name: "r", effect: "require_approval", approval, ...(risk === undefined ? {} : { risk }) }],
});

const faultsOf = (document: PolicyDocument): string[] =>
  validatePolicyDocument(document).map(({ pointer, detail }) => `${pointer} ${detail}`);

const termsOf = (...documents: PolicyDocument[]) => {
  const set = buildPolicySet(documents.map((definition) => ({ policy: definition.policy, version: 1, definition })));
  return decide(compilePolicySet(set), ACTION, FACTS, NOW).approval?.grants;
};

test("a rule that requires one approver can allow grants", () => {
  for (const approval of [
    { grants: GRANTS },
    { grants: GRANTS, quorum: 1 },
    { grants: GRANTS, approvers: [{ group: "ops" }] },
    { grants: GRANTS, stages: [{ approvers: [{ group: "ops" }] }, { after: "1h", approvers: [{ count: 2 }] }] },
    { grants: GRANTS, mode: "self_confirm" as const },
  ])
    assert.deepEqual(faultsOf(policy("p", approval, "high")), []);
});

const refused: [string, PolicyDocument, RegExp][] = [
  [
    "the risk critical",
    policy("p", { grants: GRANTS }, "critical"),
    /^\/rules\/0\/approval\/grants a grant cannot cover .*critical/,
  ],
  ["a quorum", policy("p", { grants: GRANTS, quorum: 2 }), /grants a grant is the vote of one approver/],
  ["two people of a group", policy("p", { grants: GRANTS, approvers: [{ group: "a", count: 2 }] }), /one approver/],
  ["two groups", policy("p", { grants: GRANTS, approvers: [{ group: "a" }, { group: "b" }] }), /one approver/],
  [
    "two stages",
    policy("p", { grants: GRANTS, stages: [{ approvers: [{ group: "a" }] }, { approvers: [{ group: "b" }] }] }),
    /one approver/,
  ],
  ["a signature", policy("p", { grants: GRANTS, signature: "passkey" }), /signature/],
  ["no duration", policy("p", { grants: { for: "soon", count: 1 } }), /grants\/for "soon" is not a duration/],
  ["too long", policy("p", { grants: { for: "31d", count: 1 } }), /grants\/for "31d" is not between 1m and 30d/],
  ["no count", policy("p", { grants: { for: "8h" } } as never), /grants\/count/],
  ["too many uses", policy("p", { grants: { for: "8h", count: 10_001 } }), /grants\/count/],
  [
    "a limit",
    {
      policy: "p",
      rules: [],
      limits: [{ name: "l", count: 1, window: "1h", effect: "require_approval", approval: { grants: GRANTS } }],
    },
    /^\/limits\/0\/approval\/grants an action that exceeds a limit/,
  ],
];
for (const [name, document, expected] of refused)
  test(`grants are refused with ${name}`, () => {
    const faults = faultsOf(document);
    assert.equal(faults.length, 1, faults.join("; "));
    assert.match(faults[0] as string, expected);
  });

test("all rules that require approval must allow grants, and the smallest caps apply", () => {
  const long = policy("long", { grants: { for: "8h", count: 5 } });
  const short = policy("short", { grants: { for: "1h", count: 50 } });
  assert.deepEqual(termsOf(long), { for_ms: 8 * 3_600_000, count: 5 });
  assert.deepEqual(termsOf(long, short), { for_ms: 3_600_000, count: 5 });
  assert.equal(termsOf(long, policy("none", {})), undefined);
});

test("an answer with the risk critical rules grants out, even if it allows the action", () => {
  const allowing: PolicyDocument = { policy: "z", rules: [{ name: "r", effect: "allow", risk: "critical" }] };
  assert.equal(termsOf(policy("p", { grants: GRANTS }), allowing), undefined);
  assert.equal(termsOf(policy("p", { grants: GRANTS }), policy("q", { grants: GRANTS }, "critical")), undefined);
});

test("an action that exceeds a limit is covered by no grant", () => {
  const limited: PolicyDocument = {
    policy: "limited",
    rules: [{ name: "r", effect: "require_approval", approval: { grants: GRANTS } }],
    limits: [{ name: "l", count: 0, window: "1h", effect: "require_approval" }],
  };
  const set = buildPolicySet([{ policy: "limited", version: 1, definition: limited }]);
  const compiled = compilePolicySet(set);
  const basis = compiled.policies[0]?.limits[0]?.basis ?? "";
  const facts = { ...FACTS, limits: [{ policy: "limited", limit: "l", basis, used: 0 }] };
  assert.equal(decide(compiled, ACTION, facts, NOW).approval?.grants, undefined);
});
