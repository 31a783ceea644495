/** Compares two policy sets by policies, rules and effects. */
import { diffPolicies, type PolicyDifference } from "./diff.ts";
import type { Effect, PolicyDocument } from "../policy-types.ts";

export interface SetChange {
  kind: "policy_added" | "policy_removed" | "policy_changed";
  policy: string;
  /** The changes of the policy. An added or removed policy has one change for each of its rules and limits. */
  changes: PolicyDifference[];
  /** One sentence for display. */
  summary: string;
}

export interface SetDiff {
  /** Changed policies, sorted by name. */
  policies: SetChange[];
  /** Number of rules that were added, removed, changed or moved. */
  rules: { added: number; removed: number; changed: number; moved: number };
}

/** Compares two sets with unique names. Ignores the order of policies. A renamed policy counts as removed and added. */
export function diffPolicySets(before: readonly PolicyDocument[], after: readonly PolicyDocument[]): SetDiff {
  const was = new Map(before.map((document) => [document.policy, document]));
  const is = new Map(after.map((document) => [document.policy, document]));
  const names = [...new Set([...was.keys(), ...is.keys()])].sort((a, b) => (a < b ? -1 : 1));
  const policies = names
    .map((name) => comparePolicies(name, was.get(name), is.get(name)))
    .filter((change) => change !== null);
  const count = (kind: PolicyDifference["kind"]): number =>
    policies.flatMap(({ changes }) => changes).filter((change) => change.kind === kind).length;
  return {
    policies,
    rules: {
      added: count("rule_added"),
      removed: count("rule_removed"),
      changed: count("rule_changed"),
      moved: count("rule_moved"),
    },
  };
}

function comparePolicies(
  policy: string,
  before: PolicyDocument | undefined,
  after: PolicyDocument | undefined,
): SetChange | null {
  if (before !== undefined && after !== undefined) {
    const changes = diffPolicies(before, after);
    if (changes.length === 0) return null;
    return {
      kind: "policy_changed",
      policy,
      changes,
      summary: `the policy "${policy}" changes in ${changes.length} ${changes.length === 1 ? "place" : "places"}`,
    };
  }
  const only = (after ?? before) as PolicyDocument;
  const changes =
    after !== undefined
      ? diffPolicies({ ...only, rules: [], limits: [] }, only)
      : diffPolicies(only, { ...only, rules: [], limits: [] });
  return {
    kind: after === undefined ? "policy_removed" : "policy_added",
    policy,
    changes,
    summary: `the policy "${policy}" is ${after === undefined ? "gone" : "new"}: ${describeRules(only)}${only.mode === "shadow" ? ", in shadow mode" : ""}`,
  };
}

const EFFECTS: readonly Effect[] = ["allow", "require_approval", "deny"];

function describeRules({ rules, limits = [] }: PolicyDocument): string {
  const parts = EFFECTS.map((effect) => ({
    effect,
    count: rules.filter((rule) => rule.effect === effect).length,
  })).filter(({ count }) => count > 0);
  return `${rules.length} ${rules.length === 1 ? "rule" : "rules"} (${parts.map(({ effect, count }) => `${count} ${effect}`).join(", ")})${limits.length === 0 ? "" : `, ${limits.length} ${limits.length === 1 ? "limit" : "limits"}`}`;
}
