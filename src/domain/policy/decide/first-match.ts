/** Answers of the rules of one policy. */
import { factOfPin, readPins } from "../../pins.ts";
import { clipText } from "../../text.ts";
import { describeFactFault, findSourceFact } from "../condition/source-facts.ts";
import type { CompiledPolicy, CompiledRule } from "../compile/compile.ts";
import type { Effect, ReasonCode } from "../policy-types.ts";
import type { Evaluation } from "./evaluation.ts";

export const MAX_REASON = 500;

/**
 * The answer of one policy. It comes from the first rule that matches or whose condition fails; `reason_code`
 * distinguishes the two.
 */
export interface RuleAnswer {
  readonly policy: CompiledPolicy;
  readonly rule: CompiledRule;
  readonly effect: Effect;
  readonly reason: string;
  readonly reason_code: ReasonCode;
}

/**
 * Returns the answer of the first rule that matches; null if no rule matches. Denies if the condition of an earlier
 * rule fails, because that rule might match. Denies if a pinned fact has no value, because approvers could not see it.
 */
export function findFirstMatch(policy: CompiledPolicy, evaluation: Evaluation): RuleAnswer | null {
  for (const rule of evaluation.rules(policy)) {
    if (rule.condition !== null) {
      const result = rule.condition.evaluate(evaluation.activation);
      if ("error" in result) {
        const reason = `the condition of rule "${rule.name}" in policy "${policy.name}" could not be evaluated: ${result.message}`;
        return { policy, rule, effect: "deny", reason: clipText(reason, MAX_REASON), reason_code: result.error };
      }
      if (!result.value) continue;
    }
    const unread = findUnreadPin(policy, rule, evaluation);
    if (unread !== null) {
      const reason = `the pins of rule "${rule.name}" in policy "${policy.name}" could not be read: ${unread}`;
      return { policy, rule, effect: "deny", reason: clipText(reason, MAX_REASON), reason_code: "CONDITION_ERROR" };
    }
    return {
      policy,
      rule,
      effect: rule.effect,
      reason: rule.reason ?? defaultReason(policy, rule),
      reason_code: "POLICY_RULE",
    };
  }
  return null;
}

/** Returns why a pinned fact has no value; null if all have one. */
function findUnreadPin(policy: CompiledPolicy, { approval }: CompiledRule, evaluation: Evaluation): string | null {
  for (const path of approval?.pins ?? []) {
    const declared = policy.facts.find(({ name }) => name === factOfPin(path));
    const fact = declared && findSourceFact(evaluation.sources, { ...declared, policy: policy.name });
    if (fact?.fault !== null) return describeFactFault(fact?.fault ?? "unknown");
    const [pin] = readPins([{ path, policy: policy.name }], evaluation.sources);
    if (pin?.value === undefined) return `${path} has no value`;
  }
  return null;
}

function defaultReason(policy: CompiledPolicy, rule: CompiledRule): string {
  const verb = rule.effect === "allow" ? "allowed" : rule.effect === "deny" ? "denied" : "sent for approval";
  return `${verb} by rule "${rule.name}" of policy "${policy.name}"`;
}
