/**
 * Limits with memory: at most so many matching actions, or at most such a sum, in a window. What was used before is
 * a fact of the decision like the agent's standing: it is read in the decision's transaction, recorded with it, and
 * replay takes it from the record. Nothing here reads a counter.
 */
import type { ActionRequest } from "../../actions.ts";
import { canonicalText } from "../../canonical.ts";
import { sha256Hex, utf8 } from "../../hash.ts";
import type { CompiledLimit, CompiledPolicy, CompiledPolicySet } from "../compile/compile.ts";
import { MICROS_PER_UNIT } from "../compile/compile.ts";
import { Evaluation, type LimitMatch } from "./evaluation.ts";
import { matchNames } from "../compile/name-patterns.ts";
import type { Facts, LimitFact } from "../types.ts";
import { endOfWindow, startOfWindow } from "./window.ts";

export { MICROS_PER_UNIT };
/** Largest amount of one action. */
export const MAX_AMOUNT = 1_000_000_000;

/** What must be known of the past before an action is decided, and is to be remembered when it is not denied. */
export interface MatchedLimit {
  policy: string;
  limit: string;
  /** Of `LimitFact`. */
  basis: string;
  subject: string;
  /** Uses from here on count, inclusive. Milliseconds. */
  since: number;
  /** From here on this action's own use no longer counts. Milliseconds. */
  until: number;
  /** Millionths; 0 where actions are counted. */
  amount: number;
  /** What counts: actions, or millionths. */
  unit: "count" | "sum";
}

/** What of the past a decision on this action needs. Empty where no limit matches; a limit that cannot be evaluated needs nothing: it denies. */
export function findMatchedLimits(evaluation: Evaluation): MatchedLimit[] {
  const { compiled, now } = evaluation;
  if (!compiled.hasLimits) return [];
  const needs: MatchedLimit[] = [];
  for (const policy of evaluation.applicablePolicies()) {
    for (const limit of policy.limits) {
      const match = matchLimit(policy, limit, evaluation);
      if (match.kind !== "match") continue;
      needs.push({
        policy: policy.name,
        limit: limit.rule.name,
        basis: limit.basis,
        subject: match.subject,
        since: startOfWindow(limit.window, now),
        until: endOfWindow(limit.window, now),
        amount: match.amount,
        unit: limit.sum === null ? "count" : "sum",
      });
    }
  }
  return needs;
}

/** All of them, in the order of the set. */
export function evaluateLimits(evaluation: Evaluation): void {
  for (const policy of evaluation.applicablePolicies())
    for (const limit of policy.limits) matchLimit(policy, limit, evaluation);
}

/** Evaluated once for each evaluation. */
export function matchLimit(policy: CompiledPolicy, limit: CompiledLimit, evaluation: Evaluation): LimitMatch {
  const match = evaluation.limitMatches.get(limit) ?? evaluateLimit(policy, limit, evaluation);
  evaluation.limitMatches.set(limit, match);
  return match;
}

function evaluateLimit(policy: CompiledPolicy, limit: CompiledLimit, evaluation: Evaluation): LimitMatch {
  const { rule } = limit;
  const { activation } = evaluation;
  if (!matchNames(limit.tools, evaluation.names(policy).tool)) return { kind: "none" };
  if (!evaluation.matchesRule(policy, rule)) return { kind: "none" };
  if (rule.condition !== null) {
    const result = rule.condition.evaluate(activation, policy.shadow);
    if ("error" in result)
      return { kind: "error", code: result.error, message: `its condition could not be evaluated: ${result.message}` };
    if (!result.value) return { kind: "none" };
  }
  let subject = "";
  if (limit.per !== null) {
    const result = limit.per.evaluate(evaluation.subjectActivation, policy.shadow);
    if ("error" in result)
      return {
        kind: "error",
        code: result.error,
        message: `what it counts per could not be evaluated: ${result.message}`,
      };
    const named = subjectOf(result.value);
    if (named === null)
      return {
        kind: "error",
        code: "CONDITION_ERROR",
        message: "what it counts per is not a text, a number or a boolean",
      };
    subject = named;
  }
  let amount = 0;
  if (limit.sum !== null) {
    const result = limit.sum.of.evaluate(activation, policy.shadow);
    if ("error" in result)
      return { kind: "error", code: result.error, message: `the amount could not be evaluated: ${result.message}` };
    const value = typeof result.value === "bigint" ? Number(result.value) : result.value;
    if (typeof value !== "number" || !(value >= 0 && value <= MAX_AMOUNT))
      return { kind: "error", code: "CONDITION_ERROR", message: `the amount is not a number from 0 to ${MAX_AMOUNT}` };
    amount = toMicros(value);
  }
  return { kind: "match", subject, amount };
}

/** Whether this action goes beyond the limit, given what was used before it. */
export function isExceeded(limit: CompiledLimit, used: number, amount: number): boolean {
  return limit.sum === null ? used + 1 > limit.count : used + amount > limit.sum.atMost;
}

/** Null where the facts do not say: then nothing is known, and the limit denies. */
export function findUsedBefore(
  facts: Facts,
  { policy, limit, basis }: Pick<MatchedLimit, "policy" | "limit" | "basis">,
): number | null {
  return (
    facts.limits?.find((fact) => fact.policy === policy && fact.limit === limit && fact.basis === basis)?.used ?? null
  );
}

/**
 * The facts with nothing used where they do not say: for what would be decided by policies that were not in force.
 * @param used instead of nothing, by the limit's name: actions, or the sum
 */
export function withAssumedUsage(
  compiled: CompiledPolicySet,
  request: ActionRequest,
  facts: Facts,
  now: number,
  used: Readonly<Record<string, number>> = {},
): Facts {
  if (!compiled.hasLimits) return facts;
  const missing = findMatchedLimits(new Evaluation(compiled, request, facts, now)).filter(
    (need) => findUsedBefore(facts, need) === null,
  );
  if (missing.length === 0) return facts;
  const assumed = missing.map(({ policy, limit, basis, unit }): LimitFact => {
    const amount = Object.hasOwn(used, limit) ? (used[limit] as number) : 0;
    return { policy, limit, basis, used: Math.round(amount * (unit === "sum" ? MICROS_PER_UNIT : 1)) };
  });
  return { ...facts, limits: [...(facts.limits ?? []), ...assumed] };
}

/** A name that is no limit of the set; null when all are. */
export function findUnknownLimit(compiled: CompiledPolicySet, names: readonly string[]): string | null {
  return (
    names.find((name) => !compiled.policies.some(({ limits }) => limits.some(({ rule }) => rule.name === name))) ?? null
  );
}

/** Upwards, or amounts below half a millionth would never come to anything, however many there are. */
function toMicros(value: number): number {
  const near = Math.round(value * MICROS_PER_UNIT);
  return near / MICROS_PER_UNIT < value ? near + 1 : near;
}

const PLAIN = /^[\x20-\x7e]{0,128}$/;

/** Short and printable, so that it makes a key in every store whatever an agent sends; else a digest of it. Null for what cannot be told apart. */
function subjectOf(value: unknown): string | null {
  const plain = typeof value === "bigint" ? Number(value) : value;
  if (typeof plain !== "string" && typeof plain !== "boolean" && !(typeof plain === "number" && Number.isFinite(plain)))
    return null;
  const text = typeof plain === "string" ? plain : canonicalText(plain);
  return PLAIN.test(text) && !/["\\]/.test(text) && !text.startsWith("sha256:")
    ? text
    : `sha256:${sha256Hex(utf8(text))}`;
}
