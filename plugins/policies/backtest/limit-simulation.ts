/**
 * Simulates limits whose usage was not recorded, for example because they are new. The backtest replays the decisions
 * of its range, oldest first, and counts each decision that the tested policies and limits do not deny towards the
 * limit's usage.
 */
import {
  type ActionRequest,
  type CompiledLimit,
  type CompiledPolicySet,
  type Effect,
  Evaluation,
  type Facts,
  findMatchedLimits,
  findRecordedUsage,
  isExceeded,
  type MatchedLimit,
} from "../../../src/core.ts";
import type { DecisionOutcome } from "./report.ts";

/** Ranks effects by strictness. */
export const STRICTNESS: Readonly<Record<Effect, number>> = { allow: 0, require_approval: 1, deny: 2 };

/** A limit that applies to a decision and has no recorded usage. */
export interface UnrecordedLimit extends MatchedLimit {
  compiled: CompiledLimit;
}

/**
 * Returns the limits of enforced policies that apply to the request and have no recorded usage.
 * @param now the time of the decision in milliseconds
 */
export function findUnrecordedLimits(
  set: CompiledPolicySet,
  request: ActionRequest,
  facts: Facts,
  now: number,
): UnrecordedLimit[] {
  if (!set.hasLimits) return [];
  return findMatchedLimits(new Evaluation(set, request, facts, now)).flatMap((need) => {
    if (findRecordedUsage(facts, need) !== null) return [];
    const policy = set.policies.find(({ name }) => name === need.policy);
    const compiled = policy?.limits.find(({ rule }) => rule.name === need.limit);
    return policy === undefined || policy.shadow || compiled === undefined ? [] : [{ ...need, compiled }];
  });
}

/** Usage of one limit by one subject, oldest first. `from` is the index of the first use within the window. */
interface Usage {
  at: number[];
  amounts: number[];
  from: number;
  sum: number;
}

/**
 * Returns a function that applies the limits to a decision and returns its outcome. Call it with the oldest decision
 * first.
 */
export function createLimitSimulation(): (
  to: DecisionOutcome,
  uses: readonly UnrecordedLimit[],
  at: number,
) => DecisionOutcome {
  const counted = new Map<string, Usage>();

  return (to, uses, at) => {
    let outcome = to;
    const applied = uses.map((use) => {
      const key = JSON.stringify([use.policy, use.limit, use.basis, use.subject]);
      let history = counted.get(key);
      if (history === undefined) counted.set(key, (history = { at: [], amounts: [], from: 0, sum: 0 }));
      while (history.from < history.at.length && (history.at[history.from] as number) < use.since)
        history.sum -= history.amounts[history.from++] as number;
      const { effect, name } = use.compiled.rule;
      const amount = use.unit === "count" ? 1 : use.amount;
      if (isExceeded(use.compiled, history.sum, use.amount) && STRICTNESS[effect] > STRICTNESS[outcome.effect])
        outcome = { effect, policy: use.policy, rule: name };
      return { history, amount };
    });
    if (outcome.effect === "deny") return outcome;
    for (const { history, amount } of applied) {
      history.at.push(at);
      history.amounts.push(amount);
      history.sum += amount;
    }
    return outcome;
  };
}
