/**
 * Checks the source of policies and of their tests while a person types, and returns the names that the source
 * declares.
 */
import type { PolicyTestResults, CheckedText, PolicyTexts } from "../contract/trials.ts";
import { listNamedValues, listTools } from "../domain/policy/check/expression-names.ts";
import { parsePolicyTests, type PolicyTest } from "../domain/policy/parse/parse.ts";
import type { PolicyDocument } from "../domain/policy/policy-types.ts";
import { runPolicyTestWithYields } from "./run-test-with-yields.ts";
import { fieldError, readYamlPolicies } from "./candidates.ts";
import type { YieldIfSlow } from "./yield-if-slow.ts";

/** Maximum number of results in a report. `passed` and `failed` count all results. */
const MAX_RESULTS = 500;

/** Returns every fault and warning. Runs the tests if there are no faults. */
export async function checkPolicyText({ yaml, tests }: PolicyTexts, yieldIfSlow: YieldIfSlow): Promise<CheckedText> {
  const { documents, faults, warnings } = readYamlPolicies(yaml);
  await yieldIfSlow();
  const isValid = faults.length === 0;
  return {
    documents: isValid ? documents : [],
    faults,
    warnings,
    tests: tests === null ? null : await runTests(isValid ? documents : null, tests, yieldIfSlow),
    variables: isValid ? documents.flatMap(listNamedValues) : [],
    tools: isValid ? listTools(documents) : [],
  };
}

/** @param documents the policies; null if faults prevent the tests */
async function runTests(
  documents: readonly PolicyDocument[] | null,
  text: string,
  yieldIfSlow: YieldIfSlow,
): Promise<PolicyTestResults> {
  const parsed = parsePolicyTests(text, "tests");
  const report: PolicyTestResults = { faults: parsed.faults.map(fieldError), passed: 0, failed: 0, results: [] };
  if (documents === null || report.faults.length > 0) return report;
  for (const [i, test] of parsed.tests.entries()) {
    for (const { name, pointer, failure, effect } of await runTest(documents, test, yieldIfSlow)) {
      const { line = null, column = null } = parsed.locators[i]?.(pointer) ?? {};
      if (failure === null) report.passed += 1;
      else report.failed += 1;
      if (report.results.length < MAX_RESULTS) report.results.push({ name, line, column, effect, failure });
    }
  }
  return report;
}

async function runTest(documents: readonly PolicyDocument[], test: PolicyTest, yieldIfSlow: YieldIfSlow) {
  if (test.environment !== undefined) {
    const failure = `the environment "${test.environment}" needs shared data, which only a folder of policies has`;
    return [{ name: `environment ${test.environment}`, pointer: "/environment", failure, effect: null }];
  }
  const results = await runPolicyTestWithYields(documents, test, yieldIfSlow);
  return results.map(({ name, pointer, failure, decision }) => ({
    name,
    pointer,
    failure,
    effect: decision?.effect ?? null,
  }));
}
