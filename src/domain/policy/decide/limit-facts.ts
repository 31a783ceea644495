/**
 * Limits on the number of actions or on a sum in a window. The usage is a fact of the decision. It is read in the
 * decision's transaction and recorded with the decision, and a replay reads it from the record. This module does not
 * read counters.
 */
import type { ActionRequest } from "../../actions.ts";
import { canonicalText } from "../../canonical.ts";
import { sha256Hex, utf8 } from "../../hash.ts";
import type { CompiledLimit, CompiledPolicy, CompiledPolicySet } from "../compile/compile.ts";
import { MICROS_PER_UNIT } from "../compile/compile.ts";
import { withAssumedEffects } from "./effect-keys.ts";
import { Evaluation, type LimitMatch } from "./evaluation.ts";
import { resolveObligations } from "./resolve-obligations.ts";
import type { Facts, LimitFact } from "../policy-types.ts";
import { endOfWindow, startOfWindow, type TimeWindow } from "./window.ts";

export { MICROS_PER_UNIT };
/** Maximum amount of one action. */
const MAX_AMOUNT = 1_000_000_000;

/**
 * A limit that applies to an action: the usage to read before the decision, and the use to record if the action is not
 * denied.
 */
export interface MatchedLimit {
  policy: string;
  limit: string;
  /** Digest that identifies what the limit counts. See `LimitFact`. */
  basis: string;
  subject: string;
  /** Start of the window, inclusive. Milliseconds. */
  since: number;
  /** Expiry of this action's use of the limit. Milliseconds. */
  until: number;
  /** Amount in millionths; 0 if the limit counts actions. */
  amount: number;
  /** Whether the limit counts actions or millionths of a sum. */
  unit: "count" | "sum";
  /**
   * The usage whose reported amount replaces `amount`. The reported amount counts in `window`; if `window` is null, it
   * counts until `until`.
   */
  usage?: { name: string; window: TimeWindow | null };
}

/**
 * Returns the limits that apply to an action after its obligations are applied. Omits limits that cannot be evaluated,
 * because such limits deny the action.
 */
export function findMatchedLimits(submitted: Evaluation): MatchedLimit[] {
  const { compiled, now } = submitted;
  if (!compiled.hasLimits) return [];
  const { evaluation } = resolveObligations(submitted);
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
        ...(limit.sum !== null && "usage" in limit.sum.of
          ? { usage: { name: limit.sum.of.usage, window: limit.window } }
          : {}),
      });
    }
  }
  return needs;
}

/** Matches a limit against the action. Evaluates each limit at most once per evaluation. */
export function matchLimit(policy: CompiledPolicy, limit: CompiledLimit, evaluation: Evaluation): LimitMatch {
  const match = evaluation.limitMatches.get(limit) ?? evaluateLimit(policy, limit, evaluation);
  evaluation.limitMatches.set(limit, match);
  return match;
}

function evaluateLimit(policy: CompiledPolicy, limit: CompiledLimit, evaluation: Evaluation): LimitMatch {
  const { rule } = limit;
  const { activation } = evaluation;
  if (!evaluation.matches.matchesLimit(policy, limit)) return { kind: "none" };
  if (rule.condition !== null) {
    const result = rule.condition.evaluate(activation);
    if ("error" in result)
      return { kind: "error", code: result.error, message: `its condition could not be evaluated: ${result.message}` };
    if (!result.value) return { kind: "none" };
  }
  let subject = "";
  if (limit.per !== null) {
    const result = limit.per.evaluate(evaluation.subjects(policy));
    if ("error" in result)
      return {
        kind: "error",
        code: result.error,
        message: `its per could not be evaluated: ${result.message}`,
      };
    const named = subjectOf(result.value);
    if (named === null)
      return {
        kind: "error",
        code: "CONDITION_ERROR",
        message: "its per is not a string, a number or a boolean",
      };
    subject = named;
  }
  let amount = 0;
  const of = limit.sum?.of ?? null;
  if (of !== null && "usage" in of) amount = of.reserve;
  else if (of !== null) {
    const result = of.evaluate(activation);
    if ("error" in result)
      return { kind: "error", code: result.error, message: `the amount could not be evaluated: ${result.message}` };
    const micros = amountToMicros(result.value);
    if (micros === null)
      return { kind: "error", code: "CONDITION_ERROR", message: `the amount is not a number from 0 to ${MAX_AMOUNT}` };
    amount = micros;
  }
  return { kind: "match", subject, amount };
}

/**
 * Returns true if the action exceeds the limit.
 * @param used the usage before the action
 */
export function isExceeded(limit: CompiledLimit, used: number, amount: number): boolean {
  return limit.sum === null ? used + 1 > limit.count : used + amount > limit.sum.atMost;
}

/** Returns the usage in the facts; null if it is missing. A limit without recorded usage denies. */
export function findRecordedUsage(
  facts: Facts,
  { policy, limit, basis }: Pick<MatchedLimit, "policy" | "limit" | "basis">,
): number | null {
  return (
    facts.limits?.find((fact) => fact.policy === policy && fact.limit === limit && fact.basis === basis)?.used ?? null
  );
}

/**
 * Returns facts for the evaluation of policies that were not active. Adds usage 0 for limits without a recorded usage,
 * and treats all suggested policies as in force.
 * @param used the usage to assume instead of 0, keyed by the limit's name: number of actions, or the sum
 */
export function withAssumedActivation(
  compiled: CompiledPolicySet,
  request: ActionRequest,
  facts: Facts,
  now: number,
  used: Readonly<Record<string, number>> = {},
): Facts {
  const evaluation = new Evaluation(compiled, request, facts, now);
  const inForce = compiled.suggested.length === 0 ? facts : { ...facts, suggested: [...compiled.suggested] };
  const assumedFacts = withAssumedEffects(evaluation, inForce);
  const missing = findMatchedLimits(evaluation).filter((need) => findRecordedUsage(facts, need) === null);
  if (missing.length === 0) return assumedFacts;
  const assumed = missing.map(({ policy, limit, basis, unit }): LimitFact => {
    const amount = Object.hasOwn(used, limit) ? (used[limit] as number) : 0;
    return { policy, limit, basis, used: Math.round(amount * (unit === "sum" ? MICROS_PER_UNIT : 1)) };
  });
  return { ...assumedFacts, limits: [...(facts.limits ?? []), ...assumed] };
}

/** Returns the first name that is not a limit of the set, or null. */
export function findUnknownLimit(compiled: CompiledPolicySet, names: readonly string[]): string | null {
  return (
    names.find((name) => !compiled.policies.some(({ limits }) => limits.some(({ rule }) => rule.name === name))) ?? null
  );
}

/** Converts an evaluated amount to millionths. Returns null if it is not a number from 0 to MAX_AMOUNT. */
export function amountToMicros(result: unknown): number | null {
  const value = typeof result === "bigint" ? Number(result) : result;
  return typeof value === "number" && value >= 0 && value <= MAX_AMOUNT ? roundUpToMicros(value) : null;
}

/**
 * Converts to millionths. Rounds up, because otherwise any number of amounts below half a millionth would add up to 0.
 */
function roundUpToMicros(value: number): number {
  const near = Math.round(value * MICROS_PER_UNIT);
  return near / MICROS_PER_UNIT < value ? near + 1 : near;
}

const PLAIN = /^[\x20-\x7e]{0,128}$/;

/**
 * Returns the key under which uses with this value of `per` are counted; null for types that cannot be a key. The key
 * is a short printable string or a digest of the value, so that every store accepts it.
 */
export function subjectOf(value: unknown): string | null {
  const plain = typeof value === "bigint" ? Number(value) : value;
  if (typeof plain !== "string" && typeof plain !== "boolean" && !(typeof plain === "number" && Number.isFinite(plain)))
    return null;
  const text = typeof plain === "string" ? plain : canonicalText(plain);
  return PLAIN.test(text) && !/["\\]/.test(text) && !text.startsWith("sha256:")
    ? text
    : `sha256:${sha256Hex(utf8(text))}`;
}
