/** Which rules the tests beside the policies reach. Pure: it counts what the tests have found. */
import type { TestResult } from "./run-tests.ts";
import type { PolicyDocument } from "../types.ts";

export interface RuleCoverage {
  policy: string;
  rule: string;
  /** Cases in which the rule was its policy's answer, or the limit was exceeded, whether or not another policy was stricter. */
  reached: number;
  /** Cases in which its condition could not be evaluated; they do not show what the rule does. */
  failed: number;
}

export interface Coverage {
  /** Every rule and every limit, in the order of the policies and inside them. */
  rules: RuleCoverage[];
  /** Those that no case reaches, in the same order. */
  uncovered: RuleCoverage[];
  /** Share of the rules that some case reaches, 0 to 100, not rounded; 100 where there are no rules. */
  percent: number;
}

/** @param results of all tests of these policies; a test that looked at some of them counts for those */
export function measureCoverage(policies: readonly PolicyDocument[], results: readonly TestResult[]): Coverage {
  const counts = ({ policy, rules, limits = [] }: PolicyDocument) =>
    new Map(
      [...rules, ...limits].map(({ name }): [string, RuleCoverage] => [
        name,
        { policy, rule: name, reached: 0, failed: 0 },
      ]),
    );
  const byPolicy = new Map(policies.map((document) => [document.policy, counts(document)]));
  for (const { policy, rule, reason_code } of results.flatMap(({ findings }) => findings)) {
    const counted = byPolicy.get(policy.name)?.get(rule.name);
    if (counted === undefined) continue;
    if (reason_code === "POLICY_RULE" || reason_code === "LIMIT_EXCEEDED") counted.reached += 1;
    else counted.failed += 1;
  }
  const rules = [...byPolicy.values()].flatMap((counted) => [...counted.values()]);
  const uncovered = rules.filter(({ reached }) => reached === 0);
  return {
    rules,
    uncovered,
    percent: rules.length === 0 ? 100 : (100 * (rules.length - uncovered.length)) / rules.length,
  };
}
