/**
 * Checks suggested rules. A rule must be active when it allows an action. A stop or failed result that must revert a
 * rule must be followed by the reversal. A flag can revert only rules that allowed the flagged action. Uses about 100
 * bytes of memory for each action that a suggested rule allowed.
 */
import type { Bars } from "../contract/bar.ts";
import type { StorageReader } from "../contract/storage.ts";
import type {
  DecisionEntry,
  ExecutionEntry,
  RedecisionEntry,
  SuggestedRuleEntry,
  EntryBody as LedgerEntry,
} from "../domain/entries.ts";
import {
  appendRuleResult,
  applySuggestedRuleEntry,
  exceedsFailureRate,
  findRulesRevertedByBar,
  isRuleInForce,
  isUseOfRule,
  listSuggestedTerms,
  NO_SUGGESTED_RULES,
  resultsMetaKey,
} from "../domain/suggested-rules.ts";
import type { PolicySetDocument } from "../domain/policy/policy-types.ts";
import type { EntryBody, ReportFault } from "./report.ts";

export interface SuggestedRulesAuditor {
  /** Applies the next entry; call it in order. Throws for an entry that contradicts earlier entries. */
  fold(body: EntryBody): void;
  /** Returns true if `meta` contains recent results for a rule of this policy. */
  hasResults(policy: string): boolean;
  /** Compares the rules in the entries with the active policy set, and their results with `meta`. */
  check(reader: Pick<StorageReader, "meta">, active: PolicySetDocument, fault: ReportFault): Promise<void>;
}

export function createSuggestedRulesAuditor(bars: Pick<Bars, "coverageOf">): SuggestedRulesAuditor {
  let rules = NO_SUGGESTED_RULES;
  const results = new Map<string, string>();
  /**
   * Maps an action to the policies whose suggested rules allowed it, in its first decision and in its newest
   * redecision.
   */
  const uses = new Map<string, { first: string[]; newest: string[] }>();
  /** Policies whose suggested rules the next entries must revert, and the cause. */
  let due: { cause: SuggestedRuleEntry["cause"]; policies: Set<string> } = { cause: null, policies: new Set() };

  function foldDecision({ action_id, facts, decision, ...entry }: DecisionEntry | RedecisionEntry): void {
    const { suggested = [] } = facts;
    const use = uses.get(action_id);
    if (use !== undefined) use.newest = suggested;
    if (suggested.length === 0) return;
    for (const policy of suggested) {
      const rule = rules.get(policy);
      if (rule === undefined || !isRuleInForce(rule))
        throw new RangeError(`the suggested rule of ${policy} allowed it, which was not in force`);
      if (entry.type === "decision" && !isUseOfRule(rule, entry as unknown as DecisionEntry))
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

  function foldResult({ action_id, success }: ExecutionEntry): void {
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

  function foldRule(entry: SuggestedRuleEntry): void {
    const { change, cause, rule, related_action } = entry;
    if (change === "reverted" && cause === "flag" && !policiesOf(related_action ?? "").has(rule.policy))
      throw new RangeError(
        `the suggested rule of ${rule.policy} is reverted by a flag of an action that it did not allow`,
      );
    if (change === "reverted" && cause !== "flag" && (due.cause !== cause || !due.policies.delete(rule.policy)))
      throw new RangeError(`the suggested rule of ${rule.policy} is reverted without the cause that it names`);
    rules = applySuggestedRuleEntry(rules, entry);
    if (change === "activated" || change === "restored") results.set(rule.policy, "");
  }

  return {
    fold(body) {
      const type = body["type"];
      if (type === "suggested_rule") return foldRule(body as unknown as SuggestedRuleEntry);
      const missing = [...due.policies];
      due = { cause: null, policies: new Set() };
      if (type === "decision" || type === "redecision")
        foldDecision(body as unknown as DecisionEntry | RedecisionEntry);
      if (type === "execution" && body["phase"] === "result") foldResult(body as unknown as ExecutionEntry);
      const covers = bars.coverageOf(body as unknown as LedgerEntry);
      if (covers !== null) for (const { policy } of findRulesRevertedByBar(rules, covers)) expect("stop", policy);
      if (missing.length > 0)
        throw new RangeError(`the entry before had to revert the suggested rule of ${missing.join(", ")}`);
    },
    hasResults: (policy) => results.has(policy),
    async check(reader, document, fault) {
      for (const policy of due.policies) fault(`the newest entry had to revert the suggested rule of ${policy}`);
      const active = listSuggestedTerms(document);
      for (const policy of active.keys())
        if (rules.get(policy)?.active !== true) fault(`no entry activated the suggested rule of ${policy}`);
      for (const { policy, active: isActive } of rules.values())
        if (isActive && !active.has(policy))
          fault(`the suggested rule of ${policy} is recorded as active, but it is not`);
      for (const [policy, recorded] of results)
        if ((await reader.meta(resultsMetaKey(policy))) !== recorded)
          fault(`the results of the suggested rule of ${policy} differ from the ledger`);
    },
  };
}
