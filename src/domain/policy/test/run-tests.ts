/** Runs policy tests. Pure, because the tests define the time. */
import type { ActionRequest } from "../../actions.ts";
import type { JsonObject } from "../../json.ts";
import { parseRfc3339 } from "../../time.ts";
import { buildPolicySet, compilePolicySet, type CompiledPolicySet } from "../compile/compile.ts";
import { evaluateAllPolicies, decide } from "../decide/decide.ts";
import { findUnknownLimit } from "../decide/limit-facts.ts";
import { findEvaluatedConditions } from "./evaluated-conditions.ts";
import { findGivenFactsFault, givenRequesterFacts, withGivenInputs } from "./given-facts.ts";
import { findGivenHistoryFault } from "./given-history.ts";
import type { PolicyTest } from "../parse/parse.ts";
import { findDifferences } from "./expectations.ts";
import { runScenario } from "./run-scenario.ts";
import { failedTest, type TestResult } from "./test-result.ts";
import type { PolicyDocument } from "../policy-types.ts";

/** Runs all cases, then all scenarios. Returns one result for each of them. */
export function runPolicyTest(policies: readonly PolicyDocument[], test: PolicyTest): TestResult[] {
  const steps = stepPolicyTest(policies, test);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/** Like `runPolicyTest`, but yields between decisions, because thousands of decisions can take many seconds. */
export function* stepPolicyTest(
  policies: readonly PolicyDocument[],
  test: PolicyTest,
): Generator<undefined, TestResult[]> {
  const unknown = (test.policies ?? []).filter((name) => !policies.some((policy) => policy.policy === name));
  if (unknown.length > 0) {
    const names = unknown.map((name) => `"${name}"`).join(", ");
    return [failedTest("policies", "/policies", `there is no policy ${names} here`)];
  }
  const chosen = policies.filter((policy) => test.policies === undefined || test.policies.includes(policy.policy));
  const compiled = compilePolicySet(
    buildPolicySet(chosen.map((definition) => ({ policy: definition.policy, version: 1, definition }))),
  );
  const results: TestResult[] = [];
  for (const i of test.cases.keys()) {
    yield;
    results.push(runCase(compiled, test, i));
  }
  for (const i of test.scenarios.keys()) results.push(yield* runScenario(compiled, test, i));
  return results;
}

/** Counts the decisions of each case and scenario. `pointer` is the case or scenario. */
export function countTestDecisions({ cases, scenarios }: PolicyTest): { pointer: string; decisions: number }[] {
  return [
    ...cases.map((_, i) => ({ pointer: `/cases/${i}`, decisions: 1 })),
    ...scenarios.map(({ steps }, i) => ({
      pointer: `/scenarios/${i}`,
      decisions: steps.reduce((sum, { submit, times = 1 }) => sum + (submit === undefined ? 1 : times), 0),
    })),
  ];
}

function runCase(compiled: CompiledPolicySet, test: PolicyTest, i: number): TestResult {
  const testCase = test.cases[i] as PolicyTest["cases"][number];
  const pointer = `/cases/${i}`;
  const { agent_id, tool, operation } = testCase.action;
  const request: ActionRequest = {
    agent_id,
    tool,
    operation,
    params: (testCase.action.params ?? {}) as JsonObject,
    context: (testCase.action.context ?? {}) as JsonObject,
  };
  const now = parseRfc3339(testCase.now ?? test.now) ?? 0;
  const { used = {}, history = [], facts: given = {} } = testCase;
  const stray = findUnknownLimit(compiled, Object.keys(used));
  const fault =
    stray === null
      ? (findGivenHistoryFault(history) ?? findGivenFactsFault(compiled, given))
      : `there is no limit "${stray}" in the policies under test`;
  if (fault !== null) return failedTest(testCase.name, pointer, fault);
  const facts = withGivenInputs(compiled, request, givenRequesterFacts(testCase), now, testCase);
  const decision = decide(compiled, request, facts, now);
  const differences = findDifferences(decision, testCase.expect, request);
  const findings = evaluateAllPolicies(compiled, request, facts, now);
  return {
    name: testCase.name,
    pointer,
    failure: differences.length === 0 ? null : `${differences.join("; ")} (${decision.reason})`,
    decision,
    findings,
    evaluated: findEvaluatedConditions(compiled, { request, facts, now }, findings),
  };
}
