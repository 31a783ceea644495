/**
 * Allows an action that requires approval if a grant covers it. The grant's terms, its usage and the grantor's groups
 * are facts of the decision, so a replay and the audit compute the same decision. This module does not read counters.
 */
import { MAX_REASON } from "./first-match.ts";
import { satisfiesPlans } from "../../approvers.ts";
import { displayPrincipal } from "../../principals.ts";
import { clipText } from "../../text.ts";
import { parseRfc3339 } from "../../time.ts";
import { findRedactedRead } from "../check/redacted-reads.ts";
import { Activation, compileCondition, compileExpression } from "../condition/condition.ts";
import { readUsageName } from "../compile/compile-definition.ts";
import type { Decision, Facts, GrantFact, SumCap } from "../policy-types.ts";
import type { Evaluation } from "./evaluation.ts";
import { findRedactedPaths } from "./redact.ts";
import { MICROS_PER_UNIT, amountToMicros, type MatchedLimit } from "./limit-facts.ts";
import { resolveObligations } from "./resolve-obligations.ts";

/** Maximum number of compiled expressions in each cache. */
const MAX_COMPILED = 1_000;

/** Usage of a grant before the action. `sum` is in millionths; 0 if the grant has no sum. */
export interface GrantUsage {
  count: number;
  sum: number;
}

/** Returns the name under which the uses of a grant are counted. */
export const grantUseLimitPolicy = (id: string): string => `grant:${id}`;

/** Returns the usage that the facts record; null if they record no usage. */
export function findGrantUsage(facts: Pick<Facts, "limits" | "grant">): GrantUsage | null {
  const { grant, limits = [] } = facts;
  if (grant === undefined) return null;
  const used = (name: string): number | undefined =>
    limits.find(({ policy, limit }) => policy === grantUseLimitPolicy(grant.id) && limit === name)?.used;
  const count = used("count");
  const sum = grant.sum === null ? 0 : used("sum");
  return count === undefined || sum === undefined ? null : { count, sum };
}

/**
 * Allows an action that requires approval if the grant in the facts covers it. Does not change other decisions. Does
 * not check whether the grant has ended, because the facts must contain only an open grant.
 */
export function applyGrant(decision: Decision, evaluation: Evaluation, facts: Facts): Decision {
  const { grant } = facts;
  if (grant === undefined || !isCovered(decision, evaluation, { ...facts, grant })) return decision;
  const reason = `covered by a grant of ${displayPrincipal(grant.by, grant.by_name)}; without it: ${decision.reason}`;
  return {
    ...decision,
    approval: null,
    effect: "allow",
    reason: clipText(reason, MAX_REASON),
    reason_code: "GRANTED",
  };
}

function isCovered(
  { effect, approval }: Decision,
  evaluation: Evaluation,
  facts: Facts & { grant: GrantFact },
): boolean {
  const { now } = evaluation;
  const { grant } = facts;
  const terms = approval?.grants;
  if (effect !== "require_approval" || approval === null || terms === undefined) return false;
  const [granted, until] = [parseRfc3339(grant.granted_at), parseRfc3339(grant.until)];
  if (granted === null || until === null || now >= Math.min(until, granted + terms.for_ms)) return false;
  const used = findGrantUsage(facts);
  if (used === null || used.count + 1 > Math.min(grant.count, terms.count)) return false;
  const { by, groups, independent, self } = grant;
  // A rule that requires signatures does not allow grants.
  const vote = { principals: [by], groups, independent, self, signed: false, break_glass: false, at: now };
  if (!satisfiesPlans(approval.approvers, [vote], now, now)) return false;
  const amount = matchGrant(grant, evaluation);
  return (
    amount !== null && (grant.sum === null || used.sum + amount <= Math.round(grant.sum.at_most * MICROS_PER_UNIT))
  );
}

/** Returns the use to record for an action that the grant covers; null if the grant does not cover the request. */
export function computeGrantUse(grant: GrantFact, evaluation: Evaluation): MatchedLimit | null {
  const amount = matchGrant(grant, evaluation);
  if (amount === null) return null;
  const since = parseRfc3339(grant.granted_at) ?? 0;
  const until = parseRfc3339(grant.until) ?? 0;
  return {
    policy: grantUseLimitPolicy(grant.id),
    limit: "uses",
    basis: "",
    subject: "",
    since,
    until,
    amount,
    ...usageOf(grant.sum),
    unit: "count",
  };
}

/** Returns the usage whose reported amount replaces the reserve; {} if the sum does not count usage. */
export function usageOf(sum: SumCap | null): Pick<MatchedLimit, "usage"> {
  const name = sum === null ? null : readUsageName(sum.of);
  return name === null ? {} : { usage: { name, window: null } };
}

/**
 * Returns the amount, in millionths, that the request adds to the grant's sum after obligations were applied; 0 if the
 * grant has no sum. Returns null if the grant does not cover the request:
 * - The scope is not true, or the scope or the amount cannot be evaluated.
 * - The scope or the amount can read a redacted parameter. The grantor could otherwise infer its value from the actions
 *   that the grant covers.
 *
 * All grants of one evaluation share one step budget, so that they cannot delay the decision further.
 */
export function matchGrant(
  { id, scope, sum }: Pick<GrantFact, "id" | "scope" | "sum">,
  evaluation: Evaluation,
): number | null {
  const { compiled, request, matches, grantMatches, grantActivation } = resolveObligations(evaluation).evaluation;
  const cached = grantMatches.get(id);
  if (cached !== undefined) return cached;
  const redacted = findRedactedPaths(compiled, request, matches);
  const covers = coversRequest(scope, grantActivation, redacted);
  const amount = covers ? (sum === null ? 0 : amountOf(sum, grantActivation, redacted)) : null;
  grantMatches.set(id, amount);
  return amount;
}

function coversRequest(scope: string | null, activation: Activation, redacted: readonly string[]): boolean {
  if (scope === null) return true;
  const compiled = cached(conditions, scope, compileCondition);
  if (!compiled.ok || findRedactedRead(scope, redacted) !== null) return false;
  const result = compiled.condition.evaluate(activation);
  return "value" in result && result.value;
}

function amountOf({ of, reserve }: SumCap, activation: Activation, redacted: readonly string[]): number | null {
  if (readUsageName(of) !== null) return amountToMicros(reserve);
  const compiled = cached(expressions, of, (source) => compileExpression(source, "expression of sum"));
  if (!compiled.ok || findRedactedRead(of, redacted) !== null) return null;
  const result = compiled.expression.evaluate(activation);
  return "value" in result ? amountToMicros(result.value) : null;
}

const conditions = new Map<string, ReturnType<typeof compileCondition>>();
const expressions = new Map<string, ReturnType<typeof compileExpression>>();

function cached<Compiled>(
  cache: Map<string, Compiled>,
  source: string,
  compile: (source: string) => Compiled,
): Compiled {
  const compiled = cache.get(source) ?? compile(source);
  // Move the entry to the end, so that the least recently used is evicted first.
  cache.delete(source);
  cache.set(source, compiled);
  const [oldest] = cache.keys();
  if (cache.size > MAX_COMPILED && oldest !== undefined) cache.delete(oldest);
  return compiled;
}
