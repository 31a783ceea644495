import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { diffPolicySets } from "../../src/domain/policy/diff/set-diff.ts";
import type { Effect, PolicyDocument } from "../../src/domain/policy/policy-types.ts";

const policy = (name: string, ...effects: Effect[]): PolicyDocument => ({
  policy: name,
  rules: effects.map((effect, i) => ({ name: `r${i + 1}`, effect })),
});

describe("the difference of two sets of policies", () => {
  it("is empty for equal sets in any order", () => {
    const [a, b] = [policy("a", "allow"), policy("b", "deny")];
    assert.deepEqual(diffPolicySets([a, b], [b, a]), {
      policies: [],
      rules: { added: 0, removed: 0, changed: 0, moved: 0 },
    });
  });

  it("lists added, removed and changed policies, each with its rules", () => {
    const { policies, rules } = diffPolicySets(
      [policy("a", "allow"), policy("gone", "deny", "allow")],
      [{ ...policy("new", "require_approval"), mode: "shadow" }, policy("a", "deny", "allow")],
    );
    assert.deepEqual(
      policies.map(({ kind, policy: name, summary, changes }) => [
        kind,
        name,
        summary,
        changes.map((change) => change.summary),
      ]),
      [
        [
          "policy_changed",
          "a",
          'the policy "a" changes in 2 places',
          ['the effect of the rule "r1" is deny; it was allow', 'the rule "r2" is new: it allows everything'],
        ],
        [
          "policy_removed",
          "gone",
          'the policy "gone" is gone: 2 rules (1 allow, 1 deny)',
          ['the rule "r1" is gone: it denied everything', 'the rule "r2" is gone: it allowed everything'],
        ],
        [
          "policy_added",
          "new",
          'the policy "new" is new: 1 rule (1 require_approval), in shadow mode',
          ['the rule "r1" is new: it requires approval for everything'],
        ],
      ],
    );
    assert.deepEqual(rules, { added: 2, removed: 2, changed: 1, moved: 0 });
  });
});
