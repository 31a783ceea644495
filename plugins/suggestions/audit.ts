/**
 * Checks suggested rules. A rule must be active when it allows an action. An entry that reverts a rule must follow each
 * stop and failed result that requires it. A flag can revert only rules that allowed the flagged action. Uses about 100
 * bytes of memory for each action that a suggested rule allowed.
 */
import {
  canonicalText,
  decide,
  type DecisionEntry,
  type ExecutionEntry,
  type JsonValue,
  parseEntryTime,
  type PolicySetDocument,
  type RedecisionEntry,
} from "../../src/core.ts";
import type { FeatureAuditor, FeatureStore } from "../../src/plugin.ts";
import type { SuggestedRuleEntry } from "./entry.ts";
import {
  appendRuleResult,
  exceedsFailureRate,
  findRulesRevertedByBar,
  isRuleInForce,
  isUseOfRule,
  listSuggestedTerms,
  resultsMetaKey,
  suggestedRuleState,
  type SuggestedRules,
} from "./state.ts";

export function suggestedRuleAuditor(): FeatureAuditor {
  const results = new Map<string, string>();
  /**
   * Maps an action to the policies whose suggested rules allowed it, in its first decision and in its newest
   * redecision.
   */
  const uses = new Map<string, { first: string[]; newest: string[] }>();
  /** Policies whose suggested rules the next entries must revert, and the cause. */
  let due: { cause: SuggestedRuleEntry["cause"]; policies: Set<string> } = { cause: null, policies: new Set() };

  function checkDecision(entry: DecisionEntry | RedecisionEntry, rules: SuggestedRules): void {
    const { action_id, facts, decision } = entry;
    const { suggested = [] } = facts;
    const use = uses.get(action_id);
    if (use !== undefined) use.newest = suggested;
    if (suggested.length === 0) return;
    for (const policy of suggested) {
      const rule = rules.get(policy);
      if (rule === undefined || !isRuleInForce(rule))
        throw new RangeError(`the suggested rule of ${policy} allowed it, which was not in force`);
      if (entry.type === "decision" && !isUseOfRule(rule, entry))
        throw new RangeError(`the suggested rule of ${policy} is for other agents, or another tool or operation`);
    }
    if (decision.effect !== "allow" || !suggested.includes(decision.policy ?? ""))
      throw new RangeError("it names a suggested policy that did not allow it");
    if (use === undefined)
      uses.set(action_id, { first: entry.type === "decision" ? suggested : [], newest: suggested });
  }

  function policiesOf(actionId: string): ReadonlySet<string> {
    const { first, newest } = uses.get(actionId) ?? { first: [], newest: [] };
    return new Set([...first, ...newest]);
  }

  function countResult({ action_id, success }: ExecutionEntry, rules: SuggestedRules): void {
    for (const policy of policiesOf(action_id)) {
      const rule = rules.get(policy);
      if (rule === undefined || !isRuleInForce(rule)) continue;
      const counted = appendRuleResult(results.get(policy) ?? "", success === true);
      results.set(policy, counted);
      if (success !== true && exceedsFailureRate(counted, rule)) expect("failure", policy);
    }
  }

  function expect(cause: SuggestedRuleEntry["cause"], policy: string): void {
    due = { cause, policies: new Set([...(due.cause === cause ? due.policies : []), policy]) };
  }

  function checkRule(entry: SuggestedRuleEntry): void {
    const { change, cause, rule, related_action } = entry;
    if (change === "reverted" && cause === "flag" && !policiesOf(related_action ?? "").has(rule.policy))
      throw new RangeError(
        `the suggested rule of ${rule.policy} is reverted by a flag of an action that it did not allow`,
      );
    if (change === "reverted" && cause !== "flag" && (due.cause !== cause || !due.policies.delete(rule.policy)))
      throw new RangeError(`the suggested rule of ${rule.policy} is reverted without the cause that it names`);
    if (change === "activated" || change === "restored") results.set(rule.policy, "");
  }

  return {
    check(entry, states) {
      const rules = states.state(suggestedRuleState);
      if (entry.type === "suggested_rule") return checkRule(entry);
      const missing = [...due.policies];
      due = { cause: null, policies: new Set() };
      if (entry.type === "decision" || entry.type === "redecision") checkDecision(entry, rules);
      if (entry.type === "execution" && entry.phase === "result") countResult(entry, rules);
      const covers = rules.size === 0 ? null : states.coverageOf(entry);
      if (covers !== null) for (const { policy } of findRulesRevertedByBar(rules, covers)) expect("stop", policy);
      if (missing.length > 0)
        throw new RangeError(`the entry before had to revert the suggested rule of ${missing.join(", ")}`);
    },
    /** Evaluates again each decision that a suggested rule allowed, and compares the result. */
    async checkDecision({ entry, request, facts, policies }, fault) {
      const [policy] = entry.facts.suggested ?? [];
      const set = policy === undefined ? null : await policies();
      if (set === null) return;
      const redecided = decide(set, request, facts, parseEntryTime(entry.at));
      if (canonicalText(redecided as unknown as JsonValue) !== canonicalText(entry.decision as unknown as JsonValue))
        fault(`the suggested rule of ${policy} did not allow it: evaluating it again gives a different decision`);
    },
    findFactFault(name) {
      const prefix = resultsMetaKey("");
      if (!name.startsWith(prefix)) return undefined;
      return results.has(name.slice(prefix.length)) ? null : "no such rule was activated";
    },
    async compare(store, fault, { state }) {
      for (const policy of due.policies) fault(`the newest entry had to revert the suggested rule of ${policy}`);
      const set = await readActiveSet(store);
      if (set === null) return;
      const rules = state(suggestedRuleState);
      const active = listSuggestedTerms(set);
      for (const policy of active.keys())
        if (rules.get(policy)?.active !== true) fault(`no entry activated the suggested rule of ${policy}`);
      for (const { policy, active: isActive } of rules.values())
        if (isActive && !active.has(policy))
          fault(`the suggested rule of ${policy} is recorded as active, but it is not`);
      for (const [policy, recorded] of results)
        if ((await store.meta(resultsMetaKey(policy))) !== recorded)
          fault(`the results of the suggested rule of ${policy} differ from the ledger`);
    },
  };
}

/** Returns the active policies; null if the store lacks them, which the audit of policies reports. */
async function readActiveSet(store: FeatureStore): Promise<Pick<PolicySetDocument, "policies"> | null> {
  const { policy_set } = await store.head();
  if (policy_set === null) return { policies: [] };
  const row = await store.policySet(policy_set);
  return row === null ? null : (JSON.parse(row.document) as PolicySetDocument);
}
