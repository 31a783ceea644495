/** What policies deny whatever is in the call: by its names alone. */
import type { CompiledPolicy } from "../compile/compile.ts";
import type { Evaluation } from "../decide/evaluation.ts";
import { rulesForTool } from "../compile/rule-index.ts";

/**
 * Whether the rules deny every action of these names, with any parameters and context and at any time. No condition is
 * evaluated: one that might hold is one that holds. Says nothing of what else denies: limits, stops, a suspended agent.
 */
export function isNeverAllowed(evaluation: Evaluation): boolean {
  let answered = false;
  for (const policy of evaluation.applicablePolicies()) {
    if (policy.shadow) continue;
    const effects = possibleEffects(policy, evaluation);
    if (effects.size === 1 && effects.has("deny")) return true;
    answered ||= effects.has("allow") || effects.has("require_approval");
  }
  return !answered;
}

/** What a policy may answer. A condition that cannot be evaluated denies; one that does not hold says nothing. */
function possibleEffects(policy: CompiledPolicy, evaluation: Evaluation): Set<ActionEffect> {
  const effects = new Set<ActionEffect>();
  for (const rule of rulesForTool(policy, evaluation.names(policy).tool)) {
    if (!evaluation.matchesRule(policy, rule)) continue;
    effects.add(rule.effect);
    if (rule.condition === null) return effects;
    effects.add("deny");
  }
  return effects.add("none");
}

type ActionEffect = "allow" | "require_approval" | "deny" | "none";
