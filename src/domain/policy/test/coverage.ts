/** Measures which rules the policy tests reach. Pure. */
import type { TestResult } from "./test-result.ts";
import type { PolicyDocument } from "../policy-types.ts";

export interface RuleCoverage {
  policy: string;
  rule: string;
  /**
   * Number of actions for which the rule was its policy's answer, or the limit was exceeded. Counts the action even if
   * another policy was stricter.
   */
  reached: number;
  /** Number of actions for which the rule's condition failed. They do not test the rule's effect. */
  failed: number;
  /**
   * Number of actions for which the rule's condition was true, and for which it was false. Null without a condition.
   */
  condition: { true: number; false: number } | null;
}

export interface Coverage {
  /** Every rule and every limit, in the order of the policies and of their rules. */
  rules: RuleCoverage[];
  /** The rules that no case reaches, in the same order. */
  uncovered: RuleCoverage[];
  /** Percentage of rules that at least one case reaches, not rounded; 100 if there are no rules. */
  percent: number;
}

/**
 * Measures the coverage of the policies.
 * @param results the results of all tests of these policies
 */
export function measureCoverage(policies: readonly PolicyDocument[], results: readonly TestResult[]): Coverage {
  const counts = ({ policy, rules, limits = [] }: PolicyDocument) =>
    new Map(
      [...rules, ...limits].map(({ name, when }): [string, RuleCoverage] => [
        name,
        { policy, rule: name, reached: 0, failed: 0, condition: when === undefined ? null : { true: 0, false: 0 } },
      ]),
    );
  const byPolicy = new Map(policies.map((document) => [document.policy, counts(document)]));
  for (const { policy, rule, reason_code } of results.flatMap(({ findings }) => findings)) {
    const counted = byPolicy.get(policy.name)?.get(rule.name);
    if (counted === undefined) continue;
    if (reason_code === "POLICY_RULE" || reason_code === "LIMIT_EXCEEDED") counted.reached += 1;
    else if (reason_code !== "EFFECT_REPEATED") counted.failed += 1;
  }
  for (const { policy, rule, value } of results.flatMap(({ evaluated }) => evaluated)) {
    const condition = byPolicy.get(policy)?.get(rule)?.condition ?? null;
    if (condition !== null && value !== null) condition[value ? "true" : "false"] += 1;
  }
  const rules = [...byPolicy.values()].flatMap((counted) => [...counted.values()]);
  const uncovered = rules.filter(({ reached }) => reached === 0);
  return {
    rules,
    uncovered,
    percent: rules.length === 0 ? 100 : (100 * (rules.length - uncovered.length)) / rules.length,
  };
}
