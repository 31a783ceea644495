/** Records which suggested rules are active, counts their results, and reverts rules. */
import {
  canonicalText,
  type LedgerTransaction,
  type PolicyActivation,
  type Reaction,
  type RecordedFacts,
} from "../../src/core.ts";
import { Refusal } from "../../src/plugin.ts";
import { ERRORS } from "./errors.ts";
import {
  appendRuleResult,
  buildSuggestedRuleEntry,
  exceedsFailureRate,
  findRulesRevertedByBar,
  isRuleInForce,
  listSuggestedTerms,
  resultsMetaKey,
  suggestedRuleState,
  type SuggestedRuleTerms,
} from "./state.ts";

export const suggestedRuleReaction: Reaction = {
  /** Reverts the rules that the bar covers. They stay reverted after the bar ends. */
  barPlaced(tx, { id, reason, by, covers }) {
    for (const rule of findRulesRevertedByBar(tx.state(suggestedRuleState), covers)) {
      const change = { change: "reverted", cause: "stop", related_stop: id, comment: reason, by } as const;
      tx.record(buildSuggestedRuleEntry(rule, change, tx.now));
    }
  },
  /** Counts the result for each rule that allowed the action, and reverts a rule when too many of its actions fail. */
  async resultReported(tx, { id }, { success, by, facts }) {
    for (const policy of suggestedPoliciesOf(facts)) {
      const rule = tx.state(suggestedRuleState).get(policy);
      if (rule === undefined || !isRuleInForce(rule)) continue;
      const results = appendRuleResult((await tx.meta(resultsMetaKey(policy))) ?? "", success);
      await tx.putMeta(resultsMetaKey(policy), results);
      if (success || !exceedsFailureRate(results, rule)) continue;
      const change = { change: "reverted", cause: "failure", related_action: id, by } as const;
      tx.record(buildSuggestedRuleEntry(rule, change, tx.now));
    }
  },
  activatingPolicies: assertTriedInShadow,
  activationErrors: [ERRORS.untried],
  /** Records the rules that the new set activates, changes or deactivates. A reverted rule stays reverted. */
  async policiesActivated(tx, set, by) {
    const terms = listSuggestedTerms(set);
    const record = (rule: SuggestedRuleTerms, change: "activated" | "deactivated"): void => {
      tx.record(buildSuggestedRuleEntry(rule, { change, by }, tx.now));
    };
    for (const rule of terms.values()) {
      const before = tx.state(suggestedRuleState).get(rule.policy);
      if (before?.active === true && isSameRule(before, rule)) continue;
      record(rule, "activated");
      await tx.putMeta(resultsMetaKey(rule.policy), "");
    }
    for (const rule of tx.state(suggestedRuleState).values())
      if (rule.active && !terms.has(rule.policy)) record(rule, "deactivated");
  },
};

/** Returns the names of the suggested policies that allowed the action in these decisions. */
export function suggestedPoliciesOf(decisions: readonly RecordedFacts[]): string[] {
  return [...new Set(decisions.flatMap(({ suggested = [] }) => suggested))];
}

function isSameRule(a: SuggestedRuleTerms, b: SuggestedRuleTerms): boolean {
  const text = ({ policy, in_place_of, tool, operation, agents, max_failed }: SuggestedRuleTerms): string =>
    canonicalText({ policy, in_place_of, tool, operation, agents, max_failed });
  return text(a) === text(b);
}

/**
 * Throws SUGGESTED_RULE_UNTRIED if a suggested policy would be enforced that is not active yet. Its first activation
 * must be in shadow mode.
 */
function assertTriedInShadow(tx: LedgerTransaction, edits: ReadonlyMap<string, PolicyActivation>): void {
  const active = tx.activePolicies.compiled.document.policies;
  for (const [name, { definition }] of edits) {
    if (definition.suggested === undefined || definition.mode === "shadow") continue;
    const isTried = active.some(({ policy, definition: { suggested } }) => policy === name && suggested !== undefined);
    if (!isTried)
      throw new Refusal(
        ERRORS.untried,
        `the policy "${name}" was suggested and is not active in shadow mode; activate a version with \`mode: shadow\` first`,
      );
  }
}
