/** Counts the results of actions that suggested rules allowed, and reverts a rule when too many of its actions fail. */
import {
  suggestedRuleState,
  type Actor,
  appendRuleResult,
  buildSuggestedRuleEntry,
  exceedsFailureRate,
  isRuleInForce,
  type LedgerTransaction,
  resultsMetaKey,
} from "../../src/core.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import type { VerifiedHistory } from "./verify-record.ts";

/** Returns the names of the suggested policies that allowed the action in its first or its newest decision. */
export function suggestedPoliciesOf({ first, newest }: Pick<VerifiedHistory, "first" | "newest">): string[] {
  return [...new Set([...(first.facts.suggested ?? []), ...(newest.facts.suggested ?? [])])];
}

/** Counts the result of an action for each suggested rule that allowed it. */
export async function countSuggestedResult(
  tx: LedgerTransaction,
  { id }: Pick<ActionRow, "id">,
  history: Pick<VerifiedHistory, "first" | "newest">,
  success: boolean,
  by: Actor,
): Promise<void> {
  for (const policy of suggestedPoliciesOf(history)) {
    const rule = tx.state(suggestedRuleState).get(policy);
    if (rule === undefined || !isRuleInForce(rule)) continue;
    const results = appendRuleResult((await tx.meta(resultsMetaKey(policy))) ?? "", success);
    await tx.putMeta(resultsMetaKey(policy), results);
    if (success || !exceedsFailureRate(results, rule)) continue;
    tx.record(buildSuggestedRuleEntry(rule, { change: "reverted", cause: "failure", related_action: id, by }, tx.now));
  }
}
