/** The result of one case or scenario of a policy test. */
import type { Finding } from "../decide/rule-answers.ts";
import type { Decision } from "../policy-types.ts";
import type { EvaluatedCondition } from "./evaluated-conditions.ts";

export interface TestResult {
  name: string;
  /** JSON pointer inside the test: of the case, of the scenario, or of its step that failed. */
  pointer: string;
  /** Null if it passes; else the differences. */
  failure: string | null;
  /** The decision; of a scenario the last one. Null if none was made. */
  decision: Decision | null;
  /** The answer of each policy under test to each action, even if another policy was stricter. */
  findings: readonly Finding[];
  evaluated: readonly EvaluatedCondition[];
}

/** Returns the result of a test that could not decide anything. */
export function failedTest(name: string, pointer: string, failure: string): TestResult {
  return { name, pointer, failure, decision: null, findings: [], evaluated: [] };
}
