/** The result of one case or scenario of a policy test. */
import type { RuleAnswer } from "../decide/first-match.ts";
import type { Decision } from "../policy-types.ts";
import type { EvaluatedCondition } from "./evaluated-conditions.ts";

export interface TestResult {
  name: string;
  /** JSON pointer, in the test, of the case, the scenario, or the scenario's step that failed. */
  pointer: string;
  /** The differences; null if the test passes. */
  failure: string | null;
  /** The decision; for a scenario, the last decision. Null if there was no decision. */
  decision: Decision | null;
  /** The answer of each policy under test to each action, even if another policy was stricter. */
  findings: readonly RuleAnswer[];
  evaluated: readonly EvaluatedCondition[];
}

/** Returns the result of a test that failed before its first decision. */
export function failedTest(name: string, pointer: string, failure: string): TestResult {
  return { name, pointer, failure, decision: null, findings: [], evaluated: [] };
}
