/**
 * Decides actions. Pure: the same policy set, request, facts and time always give the same decision, byte for byte.
 * This module does not read a clock, a file or random numbers.
 */
import type { ActionRequest } from "../../actions.ts";
import { combinePlans, countApproversNeeded, strictestOversightMode } from "../../approvers.ts";
import type { CompiledPolicySet, CompiledLimit, CompiledPolicy } from "../compile/compile.ts";
import { combineEditableParameters } from "../../edited-request.ts";
import { DEFAULT_REJECTION_HOLDS_MS } from "../parse/bounds.ts";
import { findRepeat } from "./effect-keys.ts";
import { Evaluation } from "./evaluation.ts";
import { restrictByAuthority } from "./authority.ts";
import { applyGrant } from "./grant.ts";
import { findUnknownHistories } from "./history-facts.ts";
import { isExceeded, matchLimit, findRecordedUsage } from "./limit-facts.ts";
import { findExtendedName } from "../compile/name-variants.ts";
import { matchesAnyName } from "../compile/name-patterns.ts";
import { type ResolvedObligations, resolveObligations } from "./resolve-obligations.ts";
import { findFirstMatch, type RuleAnswer, MAX_REASON } from "./first-match.ts";
import { combineReviewers } from "../../reviews.ts";
import { displayPrincipal } from "../../principals.ts";
import { clipText } from "../../text.ts";
import { parseRfc3339 } from "../../time.ts";
import {
  type Bar,
  type Decision,
  type Effect,
  type Facts,
  higherRisk,
  type GrantTerms,
  type Pin,
  type ReasonCode,
  type Risk,
  type ShadowOutcome,
} from "../policy-types.ts";

const STRICTNESS: Readonly<Record<Effect, number>> = { allow: 0, require_approval: 1, deny: 2 };

/**
 * Returns the decision of a policy set.
 * @param now the current time in milliseconds since the epoch
 */
export function decide(compiled: CompiledPolicySet, request: ActionRequest, facts: Facts, now: number): Decision {
  return decideEvaluation(new Evaluation(compiled, request, facts, now), facts);
}

/** Decides with an evaluation that `findMatchedLimits` has already used to read the limits. */
export function decideEvaluation(evaluation: Evaluation, facts: Facts): Decision {
  return combineFindings(evaluation, facts).decision;
}

/** Returns only the effect of the decision. Computes approval terms only if the effect depends on them. */
export function decideEffect(evaluation: Evaluation, facts: Facts): Effect {
  const needsTerms = facts.authority !== undefined || facts.grant !== undefined;
  return combineFindings(evaluation, facts, needsTerms).decision.effect;
}

/** A decision, and the additional data that its entry records. */
export interface DecisionForEntry {
  decision: Decision;
  facts: Facts;
  /** The request after the decision's obligations were applied; null if they do not change it. */
  obliged: ActionRequest | null;
}

/**
 * Decides, and returns the facts to record. Omits facts that did not affect the decision:
 * - bars, except the bar that decided
 * - suggested policies in force, except the policy that allowed the action
 * - attributes, unless a policy reads some of them
 * - `final_request`, unless an enforced policy that applies to the action has obligations
 */
export function decideForEntry(evaluation: Evaluation, facts: Facts): DecisionForEntry {
  const { decision, bar, suggested, obliged = null } = combineFindings(evaluation, facts);
  const { bars: _, suggested: __, attributes, final_request, ...others } = facts;
  const recorded: Facts = others;
  if (attributes !== undefined && evaluation.readsAttributes()) recorded.attributes = attributes;
  if (final_request !== undefined && evaluation.hasObligations()) recorded.final_request = final_request;
  if (bar !== undefined) recorded.bars = [bar];
  if (suggested !== undefined) recorded.suggested = [suggested];
  return { decision, obliged, facts: recorded };
}

/** Facts that steps after the rules add to a decision that requires approval. `limits` are added to those of the rules. */
export type StepFacts = Pick<Facts, "rejection" | "grant" | "limits">;

/**
 * Returns the decision that the same evaluation makes with more facts. Equals a second `decideForEntry` with all facts,
 * but does not evaluate the rules again, because only the steps after the rules read these facts.
 * @param decided a decision that requires approval
 */
export function applyStepFacts(decided: DecisionForEntry, evaluation: Evaluation, more: StepFacts): DecisionForEntry {
  const { limits = [] } = more;
  const facts = {
    ...decided.facts,
    ...more,
    ...(limits.length === 0 ? {} : { limits: [...(decided.facts.limits ?? []), ...limits] }),
  };
  const decision = applySteps(decided.decision, resolveObligations(evaluation).evaluation, facts);
  return { decision, facts, obliged: decision.effect === "deny" ? null : decided.obliged };
}

/** The steps after the rules, in order: an earlier rejection denies the action, then a grant can allow it. */
function applySteps(decision: Decision, evaluation: Evaluation, facts: Facts): Decision {
  if (decision.effect !== "require_approval") return decision;
  return applyGrant(unlessRejected(decision, facts, evaluation.now), evaluation, facts);
}

interface CombinedDecision {
  decision: Decision;
  /** The bar that decided. */
  bar?: Bar;
  /** Name of the suggested policy that allowed the action. */
  suggested?: string;
  /** The request that may run, if obligations changed it. */
  obliged?: ActionRequest;
}

/** @param withTerms whether the decision needs the terms of its approval; otherwise, they are null */
function combineFindings(evaluation: Evaluation, facts: Facts, withTerms = true): CombinedDecision {
  const { compiled, request } = evaluation;
  const bar = facts.bars?.find(({ policy }) => policy === null);
  if (bar !== undefined) return { decision: denial(bar.code, bar.reason, []), bar };
  const barred = findAgentBar(request, facts);
  if (barred !== null) return { decision: denial(barred.code, barred.reason, []) };
  if (compiled.policies.length === 0)
    return { decision: denial("NO_ACTIVE_POLICY", "no policy is active, so nothing is allowed", []) };
  for (const kind of ["tool", "operation"] as const) {
    const extended = findExtendedName(compiled.named[kind], request[kind]);
    if (extended === null) continue;
    const reason = `no policy names the ${kind} ${clip(request[kind])}, and it can be read as ${clip(extended)}, which a policy names; name it in a rule`;
    return { decision: denial("NO_MATCHING_RULE", reason, []) };
  }

  const findings: RuleAnswer[] = [];
  const shadow: ShadowOutcome[] = [];
  const shadowed = new Map<string, RuleAnswer>();
  const obliged = resolveObligations(evaluation);
  const found = collectFindings(obliged.evaluation, facts);
  const earlier = obliged.answers.filter(({ rule, effect }) =>
    found.every((finding) => finding.rule !== rule || finding.effect !== effect),
  );
  for (const finding of [...found, ...earlier]) {
    const { policy, effect } = finding;
    if (!policy.shadow) findings.push(finding);
    else if (
      STRICTNESS[effect] > STRICTNESS[shadowed.get(policy.name)?.effect ?? "allow"] ||
      !shadowed.has(policy.name)
    )
      shadowed.set(policy.name, finding);
  }
  for (const { policy, rule, effect, reason_code } of shadowed.values())
    shadow.push({ policy: policy.name, policy_version: policy.version, rule: rule.name, effect, reason_code });
  const answering = facts.bars?.find(({ policy }) => findings.some((finding) => finding.policy.name === policy));
  if (answering !== undefined) return { decision: denial(answering.code, answering.reason, shadow), bar: answering };
  const { answers, suggested } = applySuggestion(findings, facts, obliged.isChanged);
  if (!hasAnswer(answers)) {
    const reason = `no rule of the active policies matches ${clip(request.tool)} ${clip(request.operation)}, so it is denied`;
    return { decision: denial("NO_MATCHING_RULE", reason, shadow) };
  }
  const restrict = (list: readonly RuleAnswer[]): ReturnType<typeof restrictByAuthority> =>
    restrictByAuthority(
      strictest(list, shadow, facts, obliged, withTerms),
      evaluation,
      facts,
      obliged.isChanged,
      (delegator) => combineFindings(delegator.evaluation, delegator.facts),
    );
  let restricted = restrict(answers);
  // The recorded facts omit a suggested policy that did not allow the action, so decide without it here as a replay
  // does.
  if (suggested !== null && restricted.decision.effect !== "allow")
    restricted = restrict(findings.filter(({ policy }) => policy.suggested === null));
  if (restricted.bar !== undefined) return { decision: restricted.decision, bar: restricted.bar };
  const { decision: byRules } = restricted;
  if (suggested !== null && byRules.effect === "allow") return { decision: byRules, suggested };
  const decision = applySteps(byRules, obliged.evaluation, facts);
  const isChanged = obliged.isChanged && decision.effect !== "deny";
  return { decision, ...(isChanged ? { obliged: obliged.evaluation.request } : {}) };
}

/**
 * Returns the answers after a suggested policy is applied: if it is in force for the only rule that requires approval,
 * its answer replaces that rule's answer. Replaces nothing if the risk is critical, if a person must see pinned facts,
 * or if obligations changed the request, because the suggested policy might match only the changed request.
 */
function applySuggestion(
  findings: readonly RuleAnswer[],
  facts: Facts,
  isChanged: boolean,
): { answers: readonly RuleAnswer[]; suggested: string | null } {
  const answers = findings.filter(({ policy }) => policy.suggested === null);
  if (isChanged || answers.length === findings.length) return { answers, suggested: null };
  const asking = answers.filter(({ effect }) => effect === "require_approval");
  const [approvalFinding] = asking;
  const hasPins = (approvalFinding?.rule.approval?.pins.length ?? 0) > 0;
  const isReplaceable =
    asking.length === 1 && approvalFinding?.reason_code === "POLICY_RULE" && !hasPins && !isCritical(answers);
  if (approvalFinding === undefined || !isReplaceable) return { answers, suggested: null };
  const replacement = findings.find(
    ({ policy: { name, suggested }, effect }) =>
      effect === "allow" &&
      suggested?.policy === approvalFinding.policy.name &&
      suggested.rule === approvalFinding.rule.name &&
      facts.suggested?.includes(name) === true,
  );
  if (replacement === undefined) return { answers, suggested: null };
  // Put the replacement first, so that the decision refers to it if all other policies allow the action.
  return {
    answers: [replacement, ...answers.filter((answer) => answer !== approvalFinding)],
    suggested: replacement.policy.name,
  };
}

/** Changes `require_approval` to `deny` while an earlier rejection of the same request is in effect. */
function unlessRejected(decision: Decision, { rejection }: Facts, now: number): Decision {
  if (rejection === undefined) return decision;
  if ((parseRfc3339(rejection.until) ?? 0) <= now) return decision;
  const { approver, approver_name: name = null, at, comment } = rejection;
  const words = comment === null ? "" : `: ${comment}`;
  const reason = clipText(`rejected by ${displayPrincipal(approver, name)} at ${at}${words}`, MAX_REASON);
  const { obligations: _, ...others } = decision;
  return { ...others, approval: null, effect: "deny", reason, reason_code: "EARLIER_REJECTION" };
}

/**
 * Returns each policy's answers in order of name, including shadow policies: the answer of its rules, then a denial if
 * the rule's effect key is blocked or unknown, then the answer of each limit that is exceeded or cannot be evaluated.
 * Denials because of unknown histories follow. Omits policies without an answer. Does not check whether the agent is
 * suspended or registered.
 *
 * @param now the current time in milliseconds since the epoch
 */
export function evaluateAllPolicies(
  compiled: CompiledPolicySet,
  request: ActionRequest,
  facts: Facts,
  now: number,
): RuleAnswer[] {
  return collectFindings(new Evaluation(compiled, request, facts, now), facts);
}

function collectFindings(evaluation: Evaluation, facts: Facts): RuleAnswer[] {
  const findings: RuleAnswer[] = [];
  for (const policy of evaluation.applicablePolicies()) {
    const finding = findFirstMatch(policy, evaluation);
    if (finding !== null) findings.push(finding);
    const repeat = finding === null ? null : findRepeat(finding, evaluation, facts);
    if (repeat !== null) findings.push(repeat);
    for (const limit of policy.limits) {
      const beyond = evaluateLimit(policy, limit, evaluation, facts);
      if (beyond !== null) findings.push(beyond);
    }
  }
  for (const { policy, rule, reason } of findUnknownHistories(evaluation))
    findings.push({
      policy,
      rule,
      effect: "deny",
      reason_code: "CONDITION_ERROR",
      reason: clipText(reason, MAX_REASON),
    });
  return findings;
}

/**
 * Returns true if any policy has an answer. A limit's `require_approval` does not count, because only a rule can permit
 * an action.
 */
function hasAnswer(findings: readonly RuleAnswer[]): boolean {
  return findings.some(({ effect, reason_code }) => effect === "deny" || reason_code === "POLICY_RULE");
}

/** Returns the limit's answer; null if the limit does not apply or is not exceeded. Denies if the usage is unknown. */
function evaluateLimit(
  policy: CompiledPolicy,
  limit: CompiledLimit,
  evaluation: Evaluation,
  facts: Facts,
): RuleAnswer | null {
  const { rule } = limit;
  const match = matchLimit(policy, limit, evaluation);
  if (match.kind === "none") return null;
  const denied = (reason_code: ReasonCode, reason: string): RuleAnswer => ({
    policy,
    rule,
    effect: "deny",
    reason_code,
    reason: clipText(`the limit "${rule.name}" of policy "${policy.name}": ${reason}`, MAX_REASON),
  });
  if (match.kind === "error") return denied(match.code, match.message);
  const used = findRecordedUsage(facts, { policy: policy.name, limit: rule.name, basis: limit.basis });
  if (used === null) return denied("CONDITION_ERROR", "its usage is not known");
  if (!isExceeded(limit, used, match.amount)) return null;
  return {
    policy,
    rule,
    effect: rule.effect,
    reason_code: "LIMIT_EXCEEDED",
    reason: rule.reason ?? `it goes beyond the limit "${rule.name}" of policy "${policy.name}"`,
  };
}

/** Returns the denial of an agent that may not act at all; null if there is none. Overrides every policy. */
export function findAgentBar(
  request: Pick<ActionRequest, "agent_id" | "tool">,
  facts: Pick<Facts, "agent" | "key_ended" | "require_registered_agents">,
): { code: ReasonCode; reason: string } | null {
  const { agent } = facts;
  if (facts.key_ended === true)
    return { code: "KEY_ENDED", reason: "the key that submitted the action was revoked or has expired" };
  if (agent === undefined) {
    if (facts.require_registered_agents !== true) return null;
    return { code: "AGENT_NOT_REGISTERED", reason: `the agent ${clip(request.agent_id)} is not registered` };
  }
  if (agent.suspended) return { code: "AGENT_SUSPENDED", reason: `the agent ${clip(request.agent_id)} is suspended` };
  if (agent.allowed_tools === null || matchesAnyName(agent.allowed_tools, request.tool)) return null;
  return {
    code: "TOOL_NOT_ALLOWED",
    reason: `the agent ${clip(request.agent_id)} may not use the tool ${clip(request.tool)}`,
  };
}

/** Returns the strictest answer. Policies are sorted by name, so ties do not depend on the order of files. */
function strictest(
  findings: readonly RuleAnswer[],
  shadow: ShadowOutcome[],
  facts: Facts,
  { obligations, isChanged }: ResolvedObligations,
  withTerms: boolean,
): Decision {
  let winner = findings[0] as RuleAnswer;
  for (const finding of findings) {
    if (STRICTNESS[finding.effect] > STRICTNESS[winner.effect]) winner = finding;
  }
  const equals = findings.filter((finding) => finding.effect === winner.effect);
  // Keep the members in canonical order, so that the entry does not have to sort them.
  return {
    approval:
      withTerms && winner.effect === "require_approval" ? strictestTerms(equals, findings, facts, isChanged) : null,
    effect: winner.effect,
    ...(winner.effect === "deny" || obligations.length === 0 ? {} : { obligations: [...obligations] }),
    policy: winner.policy.name,
    policy_version: winner.policy.version,
    reason: winner.reason,
    reason_code: winner.reason_code,
    risk_level: highestRisk(equals),
    rule: winner.rule.name,
    shadow,
  };
}

function highestRisk(findings: readonly RuleAnswer[]): Risk | null {
  return findings.reduce<Risk | null>((highest, { rule }) => higherRisk(highest, rule.risk), null);
}

/**
 * Combines the terms of several policies, so that an approval satisfies all of them.
 * @param findings the answers that require approval
 * @param all answers of all policies
 * @param isChanged whether obligations changed the request. If so, approvers cannot change it again
 */
function strictestTerms(
  findings: readonly RuleAnswer[],
  all: readonly RuleAnswer[],
  facts: Facts,
  isChanged: boolean,
): Decision["approval"] {
  const holds = facts.rejection_holds_ms ?? DEFAULT_REJECTION_HOLDS_MS;
  const terms = findings.map(({ rule }) => rule.approval).filter((approval) => approval !== null);
  const approvers = combinePlans(terms.map(({ plan }) => plan));
  const grants = combineGrantTerms(findings, all);
  // As with grants, a person must approve if a limit is exceeded or the risk is `critical`.
  const approvable = !isCritical(all) && findings.every(({ reason_code }) => reason_code === "POLICY_RULE");
  const reviewers = combineReviewers(
    terms.map((each) => each.reviewers),
    approvable,
  );
  const pins = findings
    .flatMap(({ policy, rule }) => (rule.approval?.pins ?? []).map((path): Pin => ({ path, policy: policy.name })))
    .sort((a, b) => (a.path === b.path ? (a.policy < b.policy ? -1 : 1) : a.path < b.path ? -1 : 1));
  const editable = isChanged ? [] : combineEditableParameters(terms.map((each) => each.editable));
  return {
    approvers,
    ...(editable.length === 0 ? {} : { editable }),
    expires_in_ms: Math.min(...terms.map(({ expires_in_ms }) => expires_in_ms)),
    ...(grants === null ? {} : { grants }),
    mode: strictestOversightMode(approvers),
    notify: [...new Set(terms.flatMap(({ notify }) => notify))].sort(),
    ...(pins.length === 0 ? {} : { pins }),
    quorum: Math.max(...approvers.map(countApproversNeeded)),
    rejection_holds_ms: Math.max(...terms.map(({ rejection_holds_ms }) => rejection_holds_ms ?? holds)),
    ...(reviewers.length === 0 ? {} : { reviewers }),
    valid_for_ms: Math.min(...terms.map(({ valid_for_ms }) => valid_for_ms)),
  };
}

/**
 * Returns the smallest caps. Returns null if no grant can cover the action: a rule that requires approval does not
 * allow grants, an exceeded limit requires approval, or an answer has the risk `critical`.
 */
function combineGrantTerms(findings: readonly RuleAnswer[], all: readonly RuleAnswer[]): GrantTerms | null {
  if (isCritical(all)) return null;
  const terms: GrantTerms[] = [];
  for (const { rule, reason_code } of findings) {
    const grants = rule.approval?.grants ?? null;
    if (grants === null || reason_code !== "POLICY_RULE") return null;
    terms.push(grants);
  }
  return {
    count: Math.min(...terms.map(({ count }) => count)),
    for_ms: Math.min(...terms.map(({ for_ms }) => for_ms)),
  };
}

const isCritical = (findings: readonly RuleAnswer[]): boolean => findings.some(({ rule }) => rule.risk === "critical");

function denial(code: ReasonCode, reason: string, shadow: ShadowOutcome[]): Decision {
  return {
    approval: null,
    effect: "deny",
    policy: null,
    policy_version: null,
    reason,
    reason_code: code,
    risk_level: null,
    rule: null,
    shadow,
  };
}

function clip(name: string): string {
  return `"${clipText(name, 80)}"`;
}
