/** Runs the tests that stand beside policies. Pure: the clock is in the tests. */
import type { ActionRequest } from "../../actions.ts";
import type { JsonObject } from "../../json.ts";
import { parseRfc3339 } from "../../time.ts";
import { buildPolicySet, compilePolicySet, type CompiledPolicySet } from "../compile/compile.ts";
import { evaluateAllPolicies, decide, type Finding } from "../decide/decide.ts";
import { withAssumedUsage, findUnknownLimit } from "../decide/limit-facts.ts";
import type { PolicyTest } from "../parse/parse.ts";
import type { Decision, Facts, PolicyDocument } from "../types.ts";

export interface TestResult {
  name: string;
  /** Null when the case holds; else what differs. */
  failure: string | null;
  decision: Decision | null;
  /** What each policy under test said, also where another one was stricter. */
  findings: readonly Finding[];
}

/** Who submits where a test names nobody. */
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
  return test.cases.map((one) => runCase(compiled, test, one));
}

function runCase(compiled: CompiledPolicySet, test: PolicyTest, one: PolicyTest["cases"][number]): TestResult {
  const { agent_id, tool, operation } = one.action;
  const request: ActionRequest = {
    agent_id,
    tool,
    operation,
    params: (one.action.params ?? {}) as JsonObject,
    context: (one.action.context ?? {}) as JsonObject,
  };
  const now = parseRfc3339(one.now ?? test.now) ?? 0;
  const baseFacts: Facts = { principal: { ...DEFAULT_PRINCIPAL, ...one.principal } };
  const used = one.used ?? {};
  const stray = findUnknownLimit(compiled, Object.keys(used));
  if (stray !== null)
    return {
      name: one.name,
      failure: `there is no limit "${stray}" in the policies under test`,
      decision: null,
      findings: [],
    };
  const facts = withAssumedUsage(compiled, request, baseFacts, now, used);
  const decision = decide(compiled, request, facts, now);
  const seen = {
    effect: decision.effect,
    policy: decision.policy,
    rule: decision.rule,
    reason_code: decision.reason_code,
    risk: decision.risk_level,
  };
  const wrong = Object.entries(one.expect).filter(
    ([name, wanted]) => wanted !== undefined && seen[name as keyof typeof seen] !== wanted,
  );
  const failure =
    wrong.length === 0
      ? null
      : wrong
          .map(([name, wanted]) => `${name} is ${String(seen[name as keyof typeof seen])}, expected ${String(wanted)}`)
          .join("; ") + ` (${decision.reason})`;
  return { name: one.name, failure, decision, findings: evaluateAllPolicies(compiled, request, facts, now) };
}
