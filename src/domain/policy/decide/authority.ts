/**
 * Restricts decisions on actions that an agent takes under an authority, which other agents gave it. The action must be
 * within each link of the authority, and the policies must allow it for each delegator as well as for the agent. An
 * authority never allows what the policies deny. All inputs are facts of the decision, so a replay and the audit
 * compute the same decision.
 */
import { combinePlans, countApproversNeeded, strictestOversightMode } from "../../approvers.ts";
import { combineEditableParameters } from "../../edited-request.ts";
import { readPins } from "../../pins.ts";
import { combineReviewers } from "../../reviews.ts";
import { clipText } from "../../text.ts";
import { parseRfc3339 } from "../../time.ts";
import { matchesAnyName } from "../compile/name-patterns.ts";
import {
  type AuthorityLink,
  type Bar,
  type Decision,
  type Facts,
  type LimitFact,
  type Pin,
  type ReasonCode,
  type RequiredApproval,
  higherRisk,
} from "../policy-types.ts";
import { type Delegator, listDelegators } from "./delegators.ts";
import type { Evaluation } from "./evaluation.ts";
import { MAX_REASON } from "./first-match.ts";
import { matchGrant, usageOf } from "./grant.ts";
import { findMatchedLimits, type MatchedLimit, MICROS_PER_UNIT } from "./limit-facts.ts";

/** A decision, with the bar that caused it. */
interface Restricted {
  decision: Decision;
  bar?: Bar;
}

/**
 * Returns the decision under the request's authority.
 * @param agentDecision the decision of the rules for the agent itself
 * @param isChanged whether obligations changed the request. If so, approvers cannot change it again
 * @param decideFor decides for a delegator
 */
export function restrictByAuthority(
  agentDecision: Decision,
  submitted: Evaluation,
  facts: Facts,
  isChanged: boolean,
  decideFor: (delegator: Delegator) => Restricted,
): Restricted {
  const { authority } = facts;
  if (authority === undefined || agentDecision.effect === "deny") return { decision: agentDecision };
  const deny = (reason_code: ReasonCode, reason: string): Restricted => ({
    decision: { ...DENIAL, reason: clipText(reason, MAX_REASON), reason_code, shadow: agentDecision.shadow },
  });
  if (authority.fault !== null) return deny(authority.fault.code, authority.fault.reason);
  const delegators = listDelegators(submitted);
  if (authority.links.length === 0 || delegators.length !== authority.links.length)
    return deny("CONDITION_ERROR", `the facts about the authority ${clipText(authority.id, 64)} are not known`);
  for (const { link } of delegators) {
    const excess = findExcess(link, submitted, facts);
    if (excess !== null) return deny("AUTHORITY_EXCEEDED", `the authority ${link.id} does not cover it: ${excess}`);
  }
  let decision = agentDecision;
  for (const delegator of delegators) {
    const { decision: theirs, bar } = decideFor(delegator);
    if (bar !== undefined) {
      // Deny as for a bar that covers the agent itself, so that a replay with this bar makes the same decision.
      const denied = { ...DENIAL, reason: bar.reason, reason_code: bar.code };
      return { decision: { ...denied, shadow: bar.policy === null ? [] : agentDecision.shadow }, bar };
    }
    const reason = clipText(`for "${delegator.link.agent_id}", which gave the authority: ${theirs.reason}`, MAX_REASON);
    const answer = { ...theirs, reason, shadow: agentDecision.shadow };
    if (theirs.effect === "deny") return { decision: { ...answer, approval: null } };
    if (theirs.approval === null) continue;
    const unknown = findUnknownPin(theirs.approval.pins, agentDecision.approval?.pins);
    if (unknown !== undefined)
      return deny(
        "CONDITION_ERROR",
        `${reason}; its pinned fact ${unknown.path} is not one of this request's own rules`,
      );
    const other = findOtherPin(theirs.approval.pins, facts, delegator.facts);
    if (other !== undefined)
      return deny("CONDITION_ERROR", `${reason}; its pinned fact ${other.path} has another value for this agent`);
    const approval = combineApprovals(decision.approval, theirs.approval, isChanged);
    const { obligations: _, ...first } = decision.approval === null ? answer : decision;
    const { obligations } = agentDecision;
    const risk_level = higherRisk(first.risk_level, theirs.risk_level);
    decision = { ...first, approval, ...(obligations === undefined ? {} : { obligations }), risk_level };
  }
  return { decision };
}

const DENIAL = {
  approval: null,
  effect: "deny",
  policy: null,
  policy_version: null,
  risk_level: null,
  rule: null,
} as const;

/** Returns a pin that the agent's own request lacks. Approvers see only the pinned facts of that request. */
function findUnknownPin(delegatorPins: readonly Pin[] = [], agentPins: readonly Pin[] = []): Pin | undefined {
  return delegatorPins.find((pin) => !agentPins.some(({ path, policy }) => path === pin.path && policy === pin.policy));
}

/** Returns a pin whose value differs between the delegator and the agent. Approvers see only the agent's value. */
function findOtherPin(delegatorPins: readonly Pin[] = [], agentFacts: Facts, delegator: Facts): Pin | undefined {
  const textOf = (pin: Pin, { sources }: Facts): string => JSON.stringify(readPins([pin], sources));
  return delegatorPins.find((pin) => textOf(pin, agentFacts) !== textOf(pin, delegator));
}

/**
 * Returns terms that satisfy both. Omits the terms of grants: a grant is a person's trust in one agent, so it cannot
 * satisfy rules for another agent.
 */
function combineApprovals(
  agentApproval: RequiredApproval | null,
  theirs: RequiredApproval,
  isChanged: boolean,
): RequiredApproval {
  const both = agentApproval === null ? [theirs] : [agentApproval, theirs];
  const approvers = combinePlans(both.flatMap((terms) => terms.approvers));
  const editable = isChanged ? [] : combineEditableParameters(both.map((terms) => terms.editable ?? []));
  const reviewers = combineReviewers(
    both.map((terms) => terms.reviewers ?? []),
    true,
  );
  const pins = agentApproval?.pins ?? [];
  return {
    approvers,
    ...(editable.length === 0 ? {} : { editable }),
    expires_in_ms: Math.min(...both.map(({ expires_in_ms }) => expires_in_ms)),
    mode: strictestOversightMode(approvers),
    notify: [...new Set(both.flatMap(({ notify }) => notify))].sort(),
    ...(pins.length === 0 ? {} : { pins }),
    quorum: Math.max(...approvers.map(countApproversNeeded)),
    rejection_holds_ms: Math.max(...both.map(({ rejection_holds_ms }) => rejection_holds_ms)),
    ...(reviewers.length === 0 ? {} : { reviewers }),
    valid_for_ms: Math.min(...both.map(({ valid_for_ms }) => valid_for_ms)),
  };
}

/** Returns why the action is not within an authority; null if it is. */
function findExcess(link: AuthorityLink, submitted: Evaluation, facts: Facts): string | null {
  const { request, now } = submitted;
  if ((parseRfc3339(link.until) ?? 0) <= now) return `it ended at ${link.until}`;
  if (!matchesAnyName(link.tools, request.tool))
    return `the tool "${clipText(request.tool, 80)}" is not one of its tools`;
  if (!matchesAnyName(link.operations, request.operation))
    return `the operation "${clipText(request.operation, 80)}" is not one of its operations`;
  const amount = matchGrant({ id: link.id, scope: link.condition, sum: link.sum }, submitted);
  if (amount === null) return "its condition is not met, or cannot be evaluated";
  const used = (name: string): number =>
    facts.limits?.find(({ policy, limit }) => policy === authorityUsePolicy(link.id) && limit === name)?.used ??
    Infinity;
  if (link.count !== null && used("count") + 1 > link.count) return `its ${link.count} actions are used up`;
  if (link.sum !== null && used("sum") + amount > Math.round(link.sum.at_most * MICROS_PER_UNIT))
    return `the sum of ${clipText(link.sum.of, 80)} would be more than ${link.sum.at_most}`;
  return null;
}

/** Returns the name under which the actions of an authority are counted. It cannot be a policy's name. */
export const authorityUsePolicy = (id: string): string => `authority:${id}`;

/** Returns the links whose actions are counted. */
export const listCountedLinks = ({ authority }: Pick<Facts, "authority">): AuthorityLink[] =>
  (authority?.links ?? []).filter(({ count, sum }) => count !== null || sum !== null);

/** Returns the facts that record the usage of a link, in the form of the usage of a limit. */
export function authorityUsageFacts({ id }: AuthorityLink, used: { count: number; sum: number }): LimitFact[] {
  return (["count", "sum"] as const).map((limit) => ({
    policy: authorityUsePolicy(id),
    limit,
    basis: "",
    used: used[limit],
  }));
}

/**
 * Returns the uses that an action counts because of its authority: of each link, and of the limits that apply to its
 * delegators. So the actions of all agents under an authority count together.
 */
export function listAuthorityUses(submitted: Evaluation): MatchedLimit[] {
  const { authority } = submitted.delegation;
  if (authority === undefined) return [];
  const links = listCountedLinks({ authority }).flatMap((link): MatchedLimit[] => {
    const amount = matchGrant({ id: link.id, scope: link.condition, sum: link.sum }, submitted);
    if (amount === null) return [];
    const [since, until] = [parseRfc3339(link.created_at) ?? 0, parseRfc3339(link.until) ?? 0];
    const policy = authorityUsePolicy(link.id);
    return [
      { policy, limit: "uses", basis: "", subject: "", since, until, amount, ...usageOf(link.sum), unit: "count" },
    ];
  });
  return [...links, ...listDelegators(submitted).flatMap(({ evaluation }) => findMatchedLimits(evaluation))];
}
