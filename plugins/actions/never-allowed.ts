/** Detects actions that the policies deny whatever their parameters are. */
import type { CompiledPolicy, Evaluation } from "../../src/core.ts";

/**
 * Returns true if the rules deny every action with these names, for any parameters, context and time. Does not evaluate
 * conditions; assumes that each could match. Ignores limits, stops and suspended agents.
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

/**
 * Returns the effects that a policy can have. A condition that fails denies the action. A condition that does not match
 * has no effect.
 */
function possibleEffects(policy: CompiledPolicy, evaluation: Evaluation): Set<ActionEffect> {
  const effects = new Set<ActionEffect>();
  for (const rule of evaluation.rules(policy)) {
    effects.add(rule.effect);
    if (rule.condition === null) return effects;
    effects.add("deny");
  }
  return effects.add("none");
}

type ActionEffect = "allow" | "require_approval" | "deny" | "none";
