/** Determines which conditions a decision evaluated, for the coverage of policies by their tests. */
import type { CompiledPolicySet } from "../compile/compile.ts";
import type { RuleAnswer } from "../decide/first-match.ts";
import { Evaluation } from "../decide/evaluation.ts";
import { matchLimit } from "../decide/limit-facts.ts";
import type { SimulatedDecision } from "./simulated-actions.ts";

/** The condition of a rule or limit that a decision evaluated. */
export interface EvaluatedCondition {
  policy: string;
  rule: string;
  /** Value of the condition; null if it could not be evaluated. */
  value: boolean | null;
}

/**
 * Returns the conditions that were evaluated: those of each policy's rules up to the rule that gave the answer, and
 * those of the limits that match the action.
 * @param findings the answers of all policies to the same action
 */
export function findEvaluatedConditions(
  compiled: CompiledPolicySet,
  { request, facts, now }: Pick<SimulatedDecision, "request" | "facts" | "now">,
  findings: readonly RuleAnswer[],
): EvaluatedCondition[] {
  const evaluation = new Evaluation(compiled, request, facts, now);
  return evaluation.applicablePolicies().flatMap((policy) => {
    const isLimit = ({ rule }: RuleAnswer): boolean => policy.limits.some((limit) => limit.rule === rule);
    const answer = findings.find(
      (finding) => finding.policy === policy && !isLimit(finding) && finding.rule !== policy.history?.rule,
    );
    const evaluated: EvaluatedCondition[] = [];
    for (const rule of evaluation.rules(policy)) {
      const isAnswer = rule === answer?.rule;
      if (rule.condition !== null)
        evaluated.push({
          policy: policy.name,
          rule: rule.name,
          value: isAnswer ? (answer.reason_code === "POLICY_RULE" ? true : null) : false,
        });
      if (isAnswer) break;
    }
    for (const limit of policy.limits) {
      const { rule } = limit;
      if (rule.condition === null || !evaluation.matches.matchesLimit(policy, limit)) continue;
      const { kind } = matchLimit(policy, limit, evaluation);
      evaluated.push({ policy: policy.name, rule: rule.name, value: kind === "error" ? null : kind === "match" });
    }
    return evaluated;
  });
}
