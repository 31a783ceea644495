/**
 * Suggested rules: policies with `suggested`, which allow previously approved kinds of requests in place of one rule
 * that requires approval. The state of these rules is stored only as ledger entries and is rebuilt from them. A
 * reverted rule has no effect until a person restores it, even if its policy is activated again.
 */
import {
  type Actor,
  type CompiledPolicySet,
  type Facts,
  matchesAnyName,
  parseEntryTime,
  type PolicyDocument,
  type PolicySetDocument,
} from "../../src/core.ts";
import { type Fold, PersistentMap, toRfc3339 } from "../../src/plugin.ts";
import type { SuggestedRuleEntry } from "./entry.ts";

/** The terms of a suggested rule at its activation. They determine when the rule is reverted. */
export type SuggestedRuleTerms = SuggestedRuleEntry["rule"];

export interface SuggestedRule extends SuggestedRuleTerms {
  /** Whether the active policy set enforces the policy. */
  active: boolean;
  /** The reversal of the rule; null if no reversal is in effect. */
  reverted: SuggestedRuleReversal | null;
  /** All actions that were flagged as uses of the rule. */
  flags: readonly string[];
}

interface SuggestedRuleReversal {
  cause: NonNullable<SuggestedRuleEntry["cause"]>;
  /** Time of the reversal. Milliseconds. */
  at: number;
  by: Actor | null;
  related_action: string | null;
  related_stop: string | null;
  comment: string | null;
}

/** Suggested rules, keyed by the name of their policy. Includes policies that are no longer active. */
export type SuggestedRules = PersistentMap<string, SuggestedRule>;

/** Default maximum share of failed results. */
const DEFAULT_MAX_FAILED = 0.1;
/** Number of newest results from which the share is computed. */
const COUNTED_RESULTS = 50;
/** Minimum number of failures to revert a rule. */
const MIN_FAILURES = 3;

/** Returns the rules after an entry. Throws RangeError if the entry contradicts earlier entries. */
function applySuggestedRuleEntry(rules: SuggestedRules, entry: SuggestedRuleEntry): SuggestedRules {
  const { change, rule, cause } = entry;
  const at = parseEntryTime(entry.at);
  const before = rules.get(rule.policy);
  if ((change === "reverted") !== (cause !== null))
    throw new RangeError(`the change of the suggested rule ${rule.policy} and its cause contradict each other`);
  const flag = cause === "flag" && entry.related_action !== null ? [entry.related_action] : [];
  const flags = [...(before?.flags ?? []), ...flag];
  return rules.with(rule.policy, { ...rule, flags, ...applyChange(before, entry, at) });
}

export const suggestedRuleState: Fold<SuggestedRules> = {
  name: "suggested_rules",
  initial: PersistentMap.of(),
  on: { suggested_rule: applySuggestedRuleEntry },
};

function applyChange(
  before: SuggestedRule | undefined,
  { change, rule: { policy }, cause, by, related_action, related_stop, comment }: SuggestedRuleEntry,
  at: number,
): Pick<SuggestedRule, "active" | "reverted"> {
  if (change === "activated") return { active: true, reverted: before?.reverted ?? null };
  if (before === undefined) throw new RangeError(`the suggested rule ${policy} was never activated`);
  const { active, reverted } = before;
  if (change === "deactivated") {
    if (!active) throw new RangeError(`the suggested rule ${policy} is deactivated twice`);
    return { active: false, reverted };
  }
  if (change === "reverted" && cause !== null) {
    if (reverted !== null) throw new RangeError(`the suggested rule ${policy} is reverted twice`);
    return { active, reverted: { cause, at, by, related_action, related_stop, comment } };
  }
  if (reverted === null) throw new RangeError(`the suggested rule ${policy} is not reverted`);
  if (by === null || by.agent_id !== null) throw new RangeError(`no person restored the suggested rule ${policy}`);
  return { active, reverted: null };
}

/** Returns true if the rule can allow actions: its policy is enforced, and no reversal is in effect. */
export function isRuleInForce(rule: SuggestedRule | undefined): boolean {
  return rule !== undefined && rule.active && rule.reverted === null;
}

/** Returns the names of the set's suggested policies that are in force, as facts of a decision. */
export function findSuggestedFacts(
  rules: SuggestedRules,
  { suggested }: Pick<CompiledPolicySet, "suggested">,
): Pick<Facts, "suggested"> {
  if (suggested.length === 0) return {};
  const names = suggested.filter((name) => isRuleInForce(rules.get(name)));
  return names.length === 0 ? {} : { suggested: names };
}

/**
 * Returns the rules in force that a denial above all policies reverts.
 * @param covers whether the denial covers an action of the agent with the tool, and the answers of one of the policies
 */
export function findRulesRevertedByBar(
  rules: SuggestedRules,
  covers: (target: { agent_id: string; tool: string }, policies: readonly string[]) => boolean,
): SuggestedRule[] {
  return [...rules.values()].filter(
    (rule) =>
      isRuleInForce(rule) &&
      rule.agents.some((agent_id) => covers({ agent_id, tool: rule.tool }, [rule.policy, rule.in_place_of.policy])),
  );
}

/** Returns the terms of the suggested policies that a set contains and enforces, keyed by the name of the policy. */
export function listSuggestedTerms({ policies }: Pick<PolicySetDocument, "policies">): Map<string, SuggestedRuleTerms> {
  return new Map(
    policies.flatMap(({ definition }) => suggestedTermsOf(definition) ?? []).map((terms) => [terms.policy, terms]),
  );
}

function suggestedTermsOf({ policy, mode, suggested, rules }: PolicyDocument): SuggestedRuleTerms[] | null {
  const [rule] = rules;
  if (suggested === undefined || mode === "shadow" || rule === undefined) return null;
  const { in_place_of, max_failed = DEFAULT_MAX_FAILED } = suggested;
  const agents = [rule.agent ?? []].flat();
  const [tool, operation] = [String(rule.tool), String(rule.operation)];
  return [{ agents, in_place_of, max_failed, operation, policy, tool }];
}

/**
 * Returns the last 50 results, with the result of one more use. The oldest is first; `s` is a success, `f` a failure.
 */
export function appendRuleResult(results: string, success: boolean): string {
  return `${results}${success ? "s" : "f"}`.slice(-COUNTED_RESULTS);
}

/** Returns true if the share of failures is so large that the rule must be reverted. */
export function exceedsFailureRate(results: string, { max_failed }: Pick<SuggestedRuleTerms, "max_failed">): boolean {
  const failed = results.split("f").length - 1;
  return failed >= MIN_FAILURES && failed > max_failed * results.length;
}

/** Returns the key in the store's `meta` table under which the results of a suggested rule are stored. */
export const resultsMetaKey = (policy: string): string => `suggested_results:${policy}`;

/** Returns true if the names of an action equal the names of the rule, regardless of case. */
export function isUseOfRule(
  rule: Pick<SuggestedRuleTerms, "tool" | "operation" | "agents">,
  action: { agent_id: string; tool: string; operation: string },
): boolean {
  return (
    matchesAnyName([rule.tool], action.tool) &&
    matchesAnyName([rule.operation], action.operation) &&
    matchesAnyName(rule.agents, action.agent_id)
  );
}

/**
 * Returns the entry that records a change of a suggested rule.
 * @param rule the rule before the change, or the rule that is activated
 */
export function buildSuggestedRuleEntry(
  rule: SuggestedRuleTerms,
  change: Pick<SuggestedRuleEntry, "change" | "by"> &
    Partial<Pick<SuggestedRuleEntry, "cause" | "related_action" | "related_stop" | "comment">>,
  at: number,
): SuggestedRuleEntry {
  const { policy, in_place_of, tool, operation, agents, max_failed } = rule;
  return {
    type: "suggested_rule",
    v: 1,
    at: toRfc3339(at),
    cause: null,
    related_action: null,
    related_stop: null,
    comment: null,
    ...change,
    rule: { policy, in_place_of, tool, operation, agents, max_failed },
  };
}
