/** Runs policy tests. Pure: the tests define the clock. */
import type { ActionRequest } from "../../actions.ts";
import type { JsonObject } from "../../json.ts";
import { parseRfc3339 } from "../../time.ts";
import { buildPolicySet, compilePolicySet, type CompiledPolicySet } from "../compile/compile.ts";
import { evaluateAllPolicies, decide, type Finding } from "../decide/decide.ts";
import { withAssumedActivation, findUnknownLimit } from "../decide/limit-facts.ts";
import { findGivenHistoryFault, givenSession, withGivenHistory } from "./given-history.ts";
import type { PolicyTest } from "../parse/parse.ts";
import { findDifferences } from "./expectations.ts";
import type { Decision, Facts, PolicyDocument } from "../policy-types.ts";

export interface TestResult {
  name: string;
  /** Null if the case passes; else the differences. */
  failure: string | null;
  decision: Decision | null;
  /** The answer of each policy under test, even if another policy was stricter. */
  findings: readonly Finding[];
}

/** The principal if a test names none. */
export const DEFAULT_PRINCIPAL = { key_id: "test", name: "policy test", agent_id: null, owner: null };

export function runPolicyTest(policies: readonly PolicyDocument[], test: PolicyTest): TestResult[] {
  const unknown = (test.policies ?? []).filter((name) => !policies.some((policy) => policy.policy === name));
  if (unknown.length > 0)
    return [
      {
        name: "policies",
        failure: `there is no policy ${unknown.map((name) => `"${name}"`).join(", ")} here`,
        decision: null,
        findings: [],
      },
    ];
  const chosen = policies.filter((policy) => test.policies === undefined || test.policies.includes(policy.policy));
  const compiled = compilePolicySet(
    buildPolicySet(chosen.map((definition) => ({ policy: definition.policy, version: 1, definition }))),
  );
  return test.cases.map((testCase) => runCase(compiled, test, testCase));
}

function runCase(compiled: CompiledPolicySet, test: PolicyTest, testCase: PolicyTest["cases"][number]): TestResult {
  const { agent_id, tool, operation } = testCase.action;
  const request: ActionRequest = {
    agent_id,
    tool,
    operation,
    params: (testCase.action.params ?? {}) as JsonObject,
    context: (testCase.action.context ?? {}) as JsonObject,
  };
  const now = parseRfc3339(testCase.now ?? test.now) ?? 0;
  const baseFacts: Facts = {
    principal: { ...DEFAULT_PRINCIPAL, ...testCase.principal },
    ...givenSession(testCase.session),
  };
  const used = testCase.used ?? {};
  const stray = findUnknownLimit(compiled, Object.keys(used));
  const fault =
    stray === null
      ? findGivenHistoryFault(testCase.history ?? [])
      : `there is no limit "${stray}" in the policies under test`;
  if (fault !== null)
    return {
      name: testCase.name,
      failure: fault,
      decision: null,
      findings: [],
    };
  const known = withGivenHistory(compiled, request, baseFacts, now, testCase.history);
  const facts = withAssumedActivation(compiled, request, known, now, used);
  const decision = decide(compiled, request, facts, now);
  const differences = findDifferences(decision, testCase.expect);
  const failure = differences.length === 0 ? null : `${differences.join("; ")} (${decision.reason})`;
  return { name: testCase.name, failure, decision, findings: evaluateAllPolicies(compiled, request, facts, now) };
}
