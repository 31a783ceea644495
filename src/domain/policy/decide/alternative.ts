/**
 * Finds, for a denied action, the nearest value of one parameter with which the policies would not deny it. Candidates
 * are the numbers that conditions and limits compare with a parameter. `decide` tests each candidate with the facts of
 * the denial, so an answer never depends on an interpretation of the condition.
 */
import type { ActionRequest } from "../../actions.ts";
import type { JsonObject, JsonValue } from "../../json.ts";
import type { CompiledPolicy } from "../compile/compile.ts";
import { celPath } from "../condition/cel-literal.ts";
import { Meter } from "../condition/cel-meter.ts";
import { type ComparedNumber, describeComparisons } from "../condition/compared-numbers.ts";
import type { Facts, PolicyDocument, ReasonCode } from "../policy-types.ts";
import { decideEffect } from "./decide.ts";
import { findEffects } from "./effect-keys.ts";
import { Evaluation } from "./evaluation.ts";
import { findHistoryReads } from "./history-facts.ts";
import { findMatchedLimits, findRecordedUsage, MICROS_PER_UNIT } from "./limit-facts.ts";
import { readsSameFacts, resolveObligations } from "./resolve-obligations.ts";

export interface Alternative {
  /** Such as `params.amount`. */
  path: string;
  value: number;
  /** The decision about the same action with this value. */
  decision: "allow" | "require_approval";
  /** The request with this value. */
  request: ActionRequest;
  /** The request that may run, if obligations would change it; otherwise null. */
  obliged: ActionRequest | null;
}

/** Maximum number of decisions for one denial. */
const MAX_TRIALS = 8;
/** Maximum number of rules whose numbers are candidates. */
const MAX_RULES = 200;
/** Maximum number of steps of all decisions together, because a denial must not cost much more than an approval. */
const MAX_STEPS = 100_000;
/** Denials that another value can avoid. */
const AVOIDABLE_CODES: readonly ReasonCode[] = ["POLICY_RULE", "NO_MATCHING_RULE", "LIMIT_EXCEEDED"];

/**
 * Returns the nearest alternative; null if there is none. Prefers an allowed value over one that requires approval.
 * @param facts all facts that the decision was given, also those that it does not record
 * @param reason the reason code of the denial
 */
export function findAlternative(evaluation: Evaluation, facts: Facts, reason: ReasonCode): Alternative | null {
  if (!AVOIDABLE_CODES.includes(reason)) return null;
  // The denial itself becomes a past action of this history.
  if (findHistoryReads(evaluation).some(({ history }) => history.includeDenied)) return null;
  const { compiled, now, matches } = evaluation;
  const steps = new Meter(MAX_STEPS);
  let best: Alternative | null = null;
  const candidates = listCandidates(evaluation, facts).sort((a, b) => a.distance - b.distance);
  const boundsOfAllowed = listBoundsOfAllowed(evaluation, facts);
  for (const candidate of candidates.slice(0, MAX_TRIALS)) {
    // Once a value that requires approval is found, only an allowed value is better.
    if (best !== null && boundsOfAllowed?.some((bounds) => isWithin(bounds, candidate)) === false) continue;
    const { path, value } = candidate;
    const request = replaceParameter(evaluation.request, path, value);
    const trial = new Evaluation(compiled, request, facts, now, matches, steps);
    const effect = decideEffect(trial, facts);
    if (effect === "deny" || (best !== null && effect !== "allow") || !isSameSubject(evaluation, trial)) continue;
    const { evaluation: final, isChanged } = resolveObligations(trial);
    const obliged = isChanged ? final.request : null;
    best = { path: celPath("params", path), value, decision: effect, request, obliged };
    if (effect === "allow") break;
  }
  return best;
}

/**
 * Returns, for each rule that allows actions, the comparisons that must hold for the rule to match. A value that
 * contradicts one of them in every rule cannot be allowed, so `decide` need not be called for it. Null if any value
 * might be allowed.
 */
function listBoundsOfAllowed(evaluation: Evaluation, { grant }: Facts): (readonly ComparedNumber[])[] | null {
  // Obligations can change the value, and a grant can allow what no rule does.
  if (evaluation.hasObligations() || grant !== undefined) return null;
  const allowing = enforcedPolicies(evaluation).flatMap((policy) =>
    evaluation.rules(policy).flatMap(({ effect, condition }) => (effect === "allow" ? { policy, condition } : [])),
  );
  if (allowing.length > MAX_RULES) return null;
  return allowing.map(({ policy, condition }) => {
    const definition = definitionOf(evaluation, policy);
    if (definition === undefined || condition === null) return [];
    return describeComparisons(condition.comparisons, definition).bounds;
  });
}

const isWithin = (bounds: readonly ComparedNumber[], { path, value }: Candidate): boolean =>
  bounds.every((bound) => bound.path.join("\n") !== path.join("\n") || compare(value, bound));

function compare(value: number, { operator, value: other }: ComparedNumber): boolean {
  switch (operator) {
    case "<":
      return value < other;
    case "<=":
      return value <= other;
    case ">":
      return value > other;
    case ">=":
      return value >= other;
    case "==":
      return value === other;
    default:
      return value !== other;
  }
}

const enforcedPolicies = (evaluation: Evaluation): CompiledPolicy[] =>
  evaluation.applicablePolicies().filter(({ shadow }) => !shadow);

const definitionOf = ({ compiled }: Evaluation, { order }: CompiledPolicy): PolicyDocument | undefined =>
  compiled.document.policies[order]?.definition;

/**
 * Returns true if the recorded facts also apply to the other request: both read the same facts and histories, and have
 * the same limit subjects and effect keys.
 */
function isSameSubject(evaluation: Evaluation, other: Evaluation): boolean {
  const subjects = (of: Evaluation): string[] => [
    ...findMatchedLimits(of).map(({ policy, limit, subject }) => JSON.stringify([policy, limit, subject])),
    ...findEffects(of).map(({ policy, rule, span }) =>
      JSON.stringify([policy.name, rule.name, typeof span === "string" ? span : span.subject]),
    ),
  ];
  const recordedSubjects = new Set(subjects(evaluation));
  return subjects(other).every((subject) => recordedSubjects.has(subject)) && readsSameFacts(evaluation, other);
}

interface Candidate {
  path: readonly string[];
  value: number;
  /** Distance from the requested value. */
  distance: number;
}

function listCandidates(evaluation: Evaluation, facts: Facts): Candidate[] {
  const { request } = evaluation;
  const found = new Map<string, Candidate>();
  /** The requested values of parameters by path; null if they are not numbers. */
  const requestedValues = new Map<string, number | null>();
  const add = (path: readonly string[], value: number): void => {
    const key = path.join("\n");
    let requested = requestedValues.get(key);
    if (requested === undefined) {
      const given = readParameter(request.params, path);
      requestedValues.set(key, (requested = typeof given === "number" ? given : null));
    }
    if (requested === null || !Number.isFinite(value) || value === requested) return;
    found.set(`${value}\n${key}`, { path, value, distance: Math.abs(value - requested) });
  };
  let rulesLeft = MAX_RULES;
  for (const policy of enforcedPolicies(evaluation)) {
    const definition = definitionOf(evaluation, policy);
    if (definition === undefined) continue;
    const conditions = evaluation.rules(policy).flatMap(({ condition }) => condition ?? []);
    for (const { comparisons } of conditions.slice(0, rulesLeft))
      for (const { path, operator, value } of describeComparisons(comparisons, definition).compared) {
        add(path, value);
        // A strict comparison excludes the number itself.
        if (operator !== "<=" && operator !== "==") add(path, value - stepOf(value));
        if (operator !== ">=" && operator !== "==") add(path, value + stepOf(value));
      }
    rulesLeft -= Math.min(conditions.length, rulesLeft);
    for (const limit of policy.limits) {
      const { basis, rule, sum } = limit;
      const per = definition.limits?.find(({ name }) => name === rule.name)?.per;
      if (sum === null || "usage" in sum.of || sum.of.parameter === null || !isOwnLimit(per, facts)) continue;
      const used = findRecordedUsage(facts, { policy: policy.name, limit: rule.name, basis });
      if (used !== null && sum.atMost > used) add(sum.of.parameter, (sum.atMost - used) / MICROS_PER_UNIT);
    }
  }
  return [...found.values()];
}

/**
 * Returns true if the limit counts only the caller's actions. The rest of another limit would reveal the amounts of
 * others. A key without an agent can name any agent.
 */
const isOwnLimit = (per: string | undefined, { principal }: Facts): boolean =>
  per === "key" || (per === "agent" && principal?.agent_id != null);

/** Returns the step to the next value: 1 for an integer, and 0.01 otherwise. */
const stepOf = (value: number): number => (Number.isInteger(value) ? 1 : 0.01);

/** Returns the value at the path in the parameters; undefined if there is none. */
export function readParameter(params: JsonObject, path: readonly string[]): JsonValue | undefined {
  let value: JsonValue | undefined = params;
  for (const name of path) {
    if (typeof value !== "object" || value === null || Array.isArray(value) || !Object.hasOwn(value, name))
      return undefined;
    value = value[name];
  }
  return value;
}

function replaceParameter(request: ActionRequest, path: readonly string[], value: number): ActionRequest {
  const replaceIn = (owner: JsonObject, [name = "", ...rest]: readonly string[]): JsonObject => ({
    ...owner,
    [name]: rest.length === 0 ? value : replaceIn(owner[name] as JsonObject, rest),
  });
  return { ...request, params: replaceIn(request.params, path) };
}
