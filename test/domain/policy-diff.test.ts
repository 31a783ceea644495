import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { diffPolicies } from "../../src/domain/policy/diff/diff.ts";
import type { PolicyDocument, RuleDocument } from "../../src/domain/policy/policy-types.ts";

const rule = (name: string, over: Partial<RuleDocument> = {}): RuleDocument => ({
  name,
  tool: name,
  effect: "allow",
  ...over,
});
const policy = (rules: RuleDocument[], over: Partial<PolicyDocument> = {}): PolicyDocument => ({
  policy: "p",
  rules,
  ...over,
});
const kinds = (before: RuleDocument[], after: RuleDocument[]): unknown[] =>
  diffPolicies(policy(before), policy(after)).map((c) => [c.kind, c.rule, c.before, c.after]);

describe("the difference of two policies", () => {
  it("is empty for equal ones, whatever the order of members", () => {
    assert.deepEqual(
      diffPolicies(
        policy([{ name: "a", effect: "allow", tool: "t" }]),
        policy([{ tool: "t", effect: "allow", name: "a" }]),
      ),
      [],
    );
  });

  it("names added and removed rules, with their positions", () => {
    assert.deepEqual(kinds([rule("a"), rule("b")], [rule("b"), rule("c")]), [
      ["rule_removed", "a", 1, null],
      ["rule_added", "c", null, 2],
    ]);
  });

  it("reports as few moved rules as possible", () => {
    assert.deepEqual(
      kinds(
        ["a", "b", "c", "d"].map((n) => rule(n)),
        ["d", "a", "b", "c"].map((n) => rule(n)),
      ),
      [["rule_moved", "d", 4, 1]],
    );
    assert.deepEqual(
      kinds(
        ["a", "b", "c"].map((n) => rule(n)),
        ["c", "b", "a"].map((n) => rule(n)),
      ).length,
      2,
    );
    assert.deepEqual(
      kinds(
        ["a", "b"].map((n) => rule(n)),
        ["new", "a", "b"].map((n) => rule(n)),
      ),
      [["rule_added", "new", null, 1]],
      "what a new rule pushes down has not moved",
    );
  });

  it("lists each changed field, and reports a change together with a move", () => {
    const [change] = diffPolicies(
      policy([rule("a"), rule("b", { when: "params.n < 1" })]),
      policy([rule("b", { effect: "require_approval", approval: { quorum: 2 } }), rule("a")]),
    ).filter((c) => c.kind === "rule_changed");
    assert.deepEqual(change?.fields, [
      { field: "effect", before: "allow", after: "require_approval" },
      { field: "when", before: "params.n < 1", after: null },
      { field: "approval", before: null, after: { quorum: 2 } },
    ]);
    assert.match(
      change?.summary ?? "",
      /the effect of the rule "b" is require_approval; it was allow; the rule "b" no longer needs params\.n < 1/,
    );
  });

  it("lists changes of the policy itself first", () => {
    const [first, second] = diffPolicies(
      policy([rule("a")]),
      policy([rule("a", { effect: "deny" })], { mode: "shadow" }),
    );
    assert.deepEqual(
      [first?.kind, first?.summary, second?.kind],
      ["policy_changed", "the policy is in shadow mode: it no longer decides", "rule_changed"],
    );
    const history = (window: string): Partial<PolicyDocument> => ({ history: { per: "agent", window, max: 5 } });
    const [shorter] = diffPolicies(policy([rule("a")], history("24h")), policy([rule("a")], history("1h")));
    assert.match(shorter?.summary ?? "", /^the policy has another history: .*"window":"1h".*; it was .*"24h"/);
  });
});
