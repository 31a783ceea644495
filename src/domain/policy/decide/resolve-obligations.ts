/**
 * Applies the obligations of the rules that match a request, at most once. Evaluates the changed request again, and
 * denies it if its rules require another change. Pure.
 */
import { canonicalText } from "../../canonical.ts";
import type { JsonValue } from "../../json.ts";
import { applyObligations, combineObligations } from "../../obligations.ts";
import { clipText } from "../../text.ts";
import type { Obligation } from "../policy-types.ts";
import type { Evaluation } from "./evaluation.ts";
import { listFactCalls } from "./fact-reads.ts";
import { findHistoryMemberships, findHistoryReads } from "./history-facts.ts";
import { findFirstMatch, type RuleAnswer, MAX_REASON } from "./first-match.ts";

/** The outcome of the obligations for one request. */
export interface ResolvedObligations {
  /** Evaluation of the request that may run. */
  evaluation: Evaluation;
  /**
   * Answers that count in addition to the answers to the request of `evaluation`: denials, and the answers to the
   * submitted request if it was changed.
   */
  answers: readonly RuleAnswer[];
  /**
   * The combined obligations. Empty if no rule has any, if a rule denies the submitted request, or if they contradict
   * each other.
   */
  obligations: readonly Obligation[];
  isChanged: boolean;
}

const resolved = new WeakMap<Evaluation, ResolvedObligations>();

/**
 * Returns the request that may run, and the obligations that it satisfies. Caches the result for each evaluation.
 * Evaluates the rules in new evaluations, so that they do not use up the steps of `evaluation`.
 */
export function resolveObligations(evaluation: Evaluation): ResolvedObligations {
  if (!evaluation.hasObligations()) return { evaluation, answers: [], obligations: [], isChanged: false };
  const outcome = resolved.get(evaluation) ?? resolve(evaluation);
  resolved.set(evaluation, outcome);
  return outcome;
}

function resolve(evaluation: Evaluation): ResolvedObligations {
  const unchanged = { evaluation, answers: [], obligations: [], isChanged: false };
  const first = applyRules(evaluation);
  if (first === null) return unchanged;
  if ("denials" in first) return { ...unchanged, answers: first.denials };
  const deny = (answer: RuleAnswer, why: string): ResolvedObligations => {
    const { policy, rule } = answer;
    const reason = clipText(`the obligations of rule "${rule.name}" in policy "${policy.name}": ${why}`, MAX_REASON);
    return { ...unchanged, answers: [{ policy, rule, effect: "deny", reason, reason_code: "OBLIGATION_UNMET" }] };
  };
  if ("why" in first) return deny(first.answer, first.why);
  const { answers, obligations, request, changed } = first;
  const [path] = changed;
  if (path === undefined) return { ...unchanged, obligations };
  const obliging = findObliging(answers, path);
  if (evaluation.isFinal) return deny(obliging, `${path} does not satisfy them, and the request may no longer change`);
  const final = evaluation.withRequest(request);
  if (!readsSameFacts(final, evaluation))
    return deny(obliging, `a fact or the owner of a history depends on ${changed.join(" or ")}`);
  const second = applyRules(final);
  if (second !== null && "denials" in second)
    return { evaluation: final, answers: [...answers, ...second.denials], obligations, isChanged: true };
  if (second !== null && "why" in second) return deny(second.answer, `after the change, ${second.why}`);
  const [again] = second?.changed ?? [];
  if (second !== null && again !== undefined)
    return deny(findObliging(second.answers, again), `they change ${again} again after the change of ${path}`);
  return { evaluation: final, answers, obligations, isChanged: true };
}

type Applied =
  | { denials: RuleAnswer[] }
  | { answers: RuleAnswer[]; obligations: Obligation[]; request: Evaluation["request"]; changed: string[] }
  | { answer: RuleAnswer; why: string };

/**
 * Applies the obligations of every rule that matched. If a matched rule denies, returns the denials instead. Returns
 * null if there are no obligations. Skips suggested policies: a failed condition counts as a denial here, so an error
 * in a suggested policy would drop the obligations of all others.
 */
function applyRules(evaluation: Evaluation): Applied | null {
  const ownEvaluation = evaluation.withRequest(evaluation.request);
  const answers = ownEvaluation
    .applicablePolicies()
    .flatMap((policy) =>
      policy.shadow || policy.suggested !== null ? [] : (findFirstMatch(policy, ownEvaluation) ?? []),
    );
  const lists = answers.map(({ rule }) => rule.obligations);
  if (lists.every((list) => list.length === 0)) return null;
  const denials = answers.filter(({ effect }) => effect === "deny");
  if (denials.length > 0) return { denials };
  const obligations = combineObligations(lists);
  const applied = Array.isArray(obligations) ? applyObligations(evaluation.request, obligations) : obligations;
  if ("detail" in applied)
    return { answer: findObliging(answers, applied.path), why: `${applied.path}: ${applied.detail}` };
  return { answers, obligations: obligations as Obligation[], ...applied };
}

function findObliging(answers: readonly RuleAnswer[], path: string): RuleAnswer {
  return answers.find(({ rule }) => rule.obligations.some((each) => each.path === path)) as RuleAnswer;
}

/** Returns true if two requests read the same histories and facts, and belong to the same histories. */
export const readsSameFacts = (a: Evaluation, b: Evaluation): boolean => readsText(a) === readsText(b);

/**
 * Returns, as text, the histories and facts that a request reads and the histories that it belongs to. They must be the
 * same for the submitted and the changed request, because a decision has only one set of facts.
 */
function readsText(evaluation: Evaluation): string {
  const calls = listFactCalls(evaluation);
  const histories = findHistoryReads(evaluation).map(({ span }) => span);
  const places = findHistoryMemberships(evaluation, "allow");
  return canonicalText({ calls, histories, places } as unknown as JsonValue);
}
