import assert from "node:assert/strict";
import test, { describe, it } from "node:test";
import {
  buildPolicySet,
  compilePolicySet,
  emptyPolicySet,
  isPrecompiled,
  PolicyCompileError,
  policiesForTool,
  policySetDigest,
  precompilePolicySet,
  type CompiledPolicySet,
} from "../../src/domain/policy/compile/compile.ts";
import { decide } from "../../src/domain/policy/decide/decide.ts";
import type { PolicyDocument, PolicySetMember } from "../../src/domain/policy/policy-types.ts";
import { action, compile, FACTS, NOW, policy, rule } from "../support/policy.ts";

const FULL: PolicyDocument = {
  policy: "full",
  description: "d",
  mode: "enforce",
  applies_to: { tools: ["t*"], agents: ["a*"] },
  rules: [
    {
      name: "one",
      description: "d",
      tool: "t",
      operation: ["o", "p"],
      agent: "a",
      when: "params.x > 1",
      effect: "require_approval",
      risk: "low",
      reason: "why",
      approval: { quorum: 2, expires_in: "1h", notify: ["n"] },
    },
    { name: "two", effect: "deny" },
  ],
  metadata: { team: "x" },
};
const member = (definition: PolicyDocument, version = 1): PolicySetMember => ({
  policy: definition.policy,
  version,
  definition,
});

test("the digest of a known set does not change", () => {
  // Computed with sha256sum over the canonical JSON, written by hand.
  const document = buildPolicySet([member(policy("a", [rule("r", "allow")]))]);
  assert.equal(policySetDigest(document), "9eef521849d8be3a230e375d46538f6221ec092a60158dca27c1175be7e72057");
});

test("the digest does not depend on the order of files or keys", () => {
  const other = policy("other", [rule("r", "allow")]);
  const digest = policySetDigest(buildPolicySet([member(FULL), member(other)]));
  assert.equal(policySetDigest(buildPolicySet([member(other), member(FULL)])), digest);
  const turned = Object.fromEntries(Object.entries(FULL).reverse()) as unknown as PolicyDocument;
  assert.equal(policySetDigest(buildPolicySet([member(turned), member(other)])), digest);
  assert.equal(compile(other, FULL).digest, digest);
});

test("policies are sorted by UTF-16 code units", () => {
  const names = ["b", "a.b", "a-b", "a_b", "a0", "a"];
  assert.deepEqual(
    buildPolicySet(names.map((name) => member(policy(name, [rule("r", "deny")])))).policies.map((one) => one.policy),
    ["a", "a-b", "a.b", "a0", "a_b", "b"],
  );
});

test("every field of a policy, and its version, is in the digest", () => {
  const base = policySetDigest(buildPolicySet([member(FULL)]));
  const seen = new Set([base, policySetDigest(buildPolicySet([member(FULL, 2)]))]);
  let changes = 1;
  for (const path of leaves(FULL)) {
    const changed = structuredClone(FULL);
    change(changed, path);
    seen.add(policySetDigest(buildPolicySet([member(changed)])));
    changes++;
  }
  assert.ok(changes > 20);
  assert.equal(seen.size, changes + 1, "two changes gave one digest");
});

test("the set before the first activation has no digest and denies", () => {
  assert.equal(emptyPolicySet().digest, null);
  assert.deepEqual(emptyPolicySet().document, { format: "assent-policy-set/1", policies: [] });
});

test("all faults of a set are reported at once, with policy and rule", () => {
  const document = buildPolicySet([
    member(policy("a", [rule("x", "allow", { when: "params.a <" }), rule("y", "allow", { when: "nope" })])),
    member(policy("b", [rule("z", "require_approval", { approval: { expires_in: "soon" } })])),
    member(policy("b", [rule("z", "allow")])),
  ]);
  assert.throws(
    () => compilePolicySet(document),
    (error) => {
      assert.ok(error instanceof PolicyCompileError);
      assert.deepEqual(
        error.faults.map((fault) => [fault.policy, fault.rule]),
        [
          ["a", "x"],
          ["a", "y"],
          ["b", "z"],
          ["b", null],
        ],
      );
      assert.match(error.message, /policy "a", rule "x": the condition cannot be read/);
      assert.match(error.message, /policy "b" appears twice in the set/);
      return true;
    },
  );
});

/** Number of rules that a decision about an operation without rules of its own evaluates. */
function visited(compiled: CompiledPolicySet, tool: string): number {
  return policiesForTool(compiled, tool).reduce(
    (sum, one) => sum + one.rules.find({ tool, operation: "op", agent: "a" }).length,
    0,
  );
}

test("10,000 rules about other tools, and a rule about another operation, are not evaluated", () => {
  const others = Array.from({ length: 10_000 }, (_, i) =>
    rule(`r${i}`, "deny", { tool: [`tool-${i}`, `other-${i}`], when: "params.x > 1" }),
  );
  const mine = [rule("mine", "allow", { tool: "crm" }), rule("any", "deny", { tool: "crm", operation: "x" })];
  const one = compile(policy("big", [...others.slice(0, 5_000), ...mine, ...others.slice(5_000)]));
  assert.equal(visited(one, "crm"), 1);
  assert.equal(visited(one, "tool-7"), 1);
  assert.equal(visited(one, "unknown"), 0);
  assert.equal(decide(one, action("crm", "get"), FACTS, NOW).rule, "mine");
});

test("policies about other tools are not evaluated either", () => {
  const others = Array.from({ length: 2_000 }, (_, i) =>
    policy(`p${i}`, [rule("named", "deny", { tool: `tool-${i}` })]),
  );
  const narrowed = Array.from({ length: 2_000 }, (_, i) =>
    policy(`q${i}`, [rule("any", "deny")], { applies_to: { tools: [`tool-${i}`, `tool-x${i}`] } }),
  );
  const compiled = compile(
    ...others,
    ...narrowed,
    policy("mine", [rule("ok", "allow", { tool: "crm" })]),
    policy("glob", [rule("ok", "allow", { tool: "c*" })]),
  );
  assert.deepEqual(
    policiesForTool(compiled, "crm").map(({ name }) => name),
    ["glob", "mine"],
  );
  assert.deepEqual(
    policiesForTool(compiled, "tool-7").map(({ name }) => name),
    ["glob", "p7", "q7"],
  );
  assert.deepEqual(
    policiesForTool(compiled, "unknown").map(({ name }) => name),
    ["glob"],
  );
  assert.equal(decide(compiled, action("crm", "get"), FACTS, NOW).effect, "allow");
  assert.equal(decide(compiled, action("tool-x7", "get"), FACTS, NOW).policy, "q7");
});

test("rules are returned in written order, however they name the tool", () => {
  const rules = Array.from({ length: 60 }, (_, i) =>
    rule(
      `r${i}`,
      "allow",
      [{}, { tool: "crm" }, { tool: "c*" }, { tool: ["x", "crm"] }, { tool: "x" }, { tool: ["y*", "crm"] }][i % 6],
    ),
  );
  const compiled = compile(policy("p", rules));
  const expected = rules.filter((_, i) => i % 6 !== 4).map(({ name }) => name);
  assert.deepEqual(
    compiled.policies[0]?.rules.find({ tool: "crm", operation: "op", agent: "a" }).map(({ name }) => name),
    expected,
  );
});

type Path = (string | number)[];

function leaves(value: unknown, path: Path = []): Path[] {
  if (typeof value !== "object" || value === null) return [path];
  return Object.entries(value).flatMap(([key, item]) => leaves(item, [...path, key]));
}

function change(root: unknown, path: Path): void {
  const last = path.at(-1) as string;
  const parent = path.slice(0, -1).reduce((at, key) => (at as Record<string, unknown>)[key], root) as Record<
    string,
    unknown
  >;
  parent[last] = typeof parent[last] === "number" ? parent[last] + 1 : `${String(parent[last])}!`;
}

describe("a definition is compiled once, by its content", () => {
  const definition = (amount: number): PolicyDocument => ({
    policy: `once-${amount}`,
    rules: [{ name: "small", tool: "stripe", operation: "refund", when: `params.amount < ${amount}`, effect: "allow" }],
  });
  const setOf = (...amounts: number[]) =>
    buildPolicySet(amounts.map((amount) => ({ policy: `once-${amount}`, version: 1, definition: definition(amount) })));

  it("also if it is in another document, version and set", () => {
    assert.equal(isPrecompiled(setOf(711)), false);
    const first = compilePolicySet(setOf(711));
    assert.equal(isPrecompiled(setOf(711)), true);
    assert.equal(isPrecompiled(setOf(711, 712)), false);
    precompilePolicySet(setOf(711, 712));
    const second = compilePolicySet(
      buildPolicySet([{ policy: "once-711", version: 9, definition: structuredClone(definition(711)) }]),
    );
    assert.equal(second.policies[0]?.rules, first.policies[0]?.rules, "the rules are the very same");
    assert.deepEqual([first.policies[0]?.version, second.policies[0]?.version], [1, 9]);
  });

  it("its faults are reported each time, under the name in the set", () => {
    const broken = {
      policy: "once-broken",
      rules: [{ name: "r", tool: "t", operation: "o", when: "params.", effect: "allow" as const }],
    };
    for (const name of ["once-broken", "renamed"]) {
      assert.throws(
        () => compilePolicySet(buildPolicySet([{ policy: name, version: 1, definition: broken }])),
        (error: PolicyCompileError) => error.faults[0]?.policy === name && error.faults[0].rule === "r",
      );
    }
  });

  it("more definitions than are kept can still be prepared together", () => {
    const many = setOf(...Array.from({ length: 5000 }, (_, i) => 10_000 + i));
    precompilePolicySet(many);
    assert.equal(isPrecompiled(many), true);
  });
});
