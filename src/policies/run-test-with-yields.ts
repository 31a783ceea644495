/** Runs a policy test without blocking the event loop. */
import type { PolicyTest } from "../domain/policy/parse/parse.ts";
import type { PolicyDocument } from "../domain/policy/policy-types.ts";
import { stepPolicyTest } from "../domain/policy/test/run-tests.ts";
import type { TestResult } from "../domain/policy/test/test-result.ts";
import type { YieldIfSlow } from "./yield-if-slow.ts";

/**
 * Runs a test. Resolves to one result for each case and scenario. Rejects if `yieldIfSlow` throws between two
 * decisions.
 */
export async function runPolicyTestWithYields(
  policies: readonly PolicyDocument[],
  test: PolicyTest,
  yieldIfSlow: YieldIfSlow,
): Promise<TestResult[]> {
  const steps = stepPolicyTest(policies, test);
  for (let step = steps.next(); ; step = steps.next()) {
    if (step.done === true) return step.value;
    const pause = yieldIfSlow();
    if (pause !== null) await pause;
  }
}
