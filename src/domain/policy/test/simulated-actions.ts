/**
 * The actions of a scenario, from submission to result, in memory. Uses the decision functions of the service; only the
 * storage and the identities of people are simulated.
 */
import { type ActionRequest, type ActionStatus } from "../../actions.ts";
import { findSelfRelation, SELF_RELATION_REASONS } from "../../approval.ts";
import {
  type ApproverPlan,
  combinePlans,
  type CountedVote,
  evaluatePlanProgress,
  requiresSignature,
  areSamePlans,
  satisfiesPlans,
  strictestOversightMode,
} from "../../approvers.ts";
import { withGivenFacts } from "./given-facts.ts";
import { toStoredResult } from "./given-history.ts";
import type { JsonObject } from "../../json.ts";
import type { ScenarioStep } from "../check/test-faults.ts";
import { selectCountedLimits } from "../../limit-uses.ts";
import { applyDecisionObligations } from "../../obligations.ts";
import { encodeRequest } from "../../request.ts";
import { toRfc3339 } from "../../time.ts";
import type { CompiledPolicySet } from "../compile/compile.ts";
import { decideForEntry } from "../decide/decide.ts";
import { findEffects, findMemberships, toEffectFact } from "../decide/effect-keys.ts";
import { Evaluation } from "../decide/evaluation.ts";
import {
  findHistoryReads,
  type HistoryMembership,
  type HistorySpan,
  type PastActionRow,
  toHistoryFact,
} from "../decide/history-facts.ts";
import { amountToMicros, findMatchedLimits, findRecordedUsage, type MatchedLimit } from "../decide/limit-facts.ts";
import { approvalValidityMs, rejectionHoldMs } from "../decide/validity.ts";
import type { Decision, Facts, ReasonCode, RejectionFact, RequiredApproval } from "../policy-types.ts";

/** Default of `permits.valid_seconds`, after which an allowed action can no longer start. Milliseconds. */
const ALLOWED_MS = 300_000;
/** Default of `unknown_after_minutes`, after which the outcome of a started action is unknown. Milliseconds. */
const UNKNOWN_AFTER_MS = 3_600_000;

/**
 * Thrown if the service would refuse the request with this code. The action changes only if the policies now deny it or
 * require more approvals.
 */
export class StepRefusedError extends Error {
  readonly code: string;
  constructor(code: string, message: string) {
    super(message);
    this.name = "StepRefusedError";
    this.code = code;
  }
}

/** One decision of a scenario, for coverage. */
export interface SimulatedDecision {
  decision: Decision;
  request: ActionRequest;
  facts: Facts;
  /** Time of the decision. Milliseconds. */
  now: number;
}

/** A person who votes. `owner` identifies the person, as `principal.owner` identifies the person behind the agent. */
interface SimulatedVoter {
  owner: string;
  groups: readonly string[];
  /** Whether the voter is in a group of the requester. */
  sharesGroup: boolean;
  signed: boolean;
}

type RequesterFacts = Pick<Facts, "attributes" | "final_request" | "labels" | "principal" | "session">;

/** An action of a scenario. */
export interface SimulatedAction extends Omit<PastActionRow, "at" | "effective" | "erased_at" | "request"> {
  /** The request that may run. */
  request: ActionRequest;
  /** Canonical JSON of the submitted request. */
  text: string;
  /** Principal, session and attributes of the submission, and the use of limits before it. */
  basis: RequesterFacts & Pick<Facts, "limits">;
  /** Values of facts, keyed by name, for the submission and for later decisions. */
  given: Readonly<Record<string, unknown>>;
  /** The plans that must be satisfied; null if approval was never required. */
  approvers: readonly ApproverPlan[] | null;
  /** Time when the first stage opened. Milliseconds. */
  since: number;
  /** Terms of the newest decision that required approval. */
  terms: RequiredApproval | null;
  votes: CountedVote[];
  rejections: { rejection: RejectionFact; until: number }[];
  wasStartable: boolean;
}

interface LimitUse extends Pick<MatchedLimit, "policy" | "limit" | "subject" | "amount"> {
  usage: MatchedLimit["usage"] | undefined;
  action: SimulatedAction;
  at: number;
  /** Whether the amount was reported with the result. */
  isReported: boolean;
}

interface HistoryItem extends Pick<HistoryMembership, "policy" | "basis" | "subject"> {
  action: SimulatedAction;
  at: number;
}

const STATUS_OF = { allow: "allowed", deny: "denied", require_approval: "pending_approval" } as const;

export class SimulatedActions {
  readonly decisions: SimulatedDecision[] = [];
  private readonly compiled: CompiledPolicySet;
  private readonly actions: SimulatedAction[] = [];
  private uses: LimitUse[] = [];
  private readonly past: HistoryItem[] = [];
  private now: number;

  /** @param now the start of the scenario in milliseconds */
  constructor(compiled: CompiledPolicySet, now: number) {
    this.compiled = compiled;
    this.now = now;
  }

  /** Lets time pass. Pending and approved actions expire, and the outcome of started actions becomes unknown. */
  pass(ms: number): void {
    this.now += ms;
    for (const action of this.actions) {
      const { status, expires_at, approved_until, started_at } = action;
      if (status === "pending_approval" && (expires_at ?? 0) <= this.now) this.endPending(action, "expired");
      if (status === "approved" && (approved_until ?? 0) <= this.now) action.status = "expired";
      if (status === "executing" && (started_at ?? 0) + UNKNOWN_AFTER_MS <= this.now) action.status = "unknown";
    }
  }

  /** Submits an action. Returns it with its decision. */
  submit(request: ActionRequest, basis: RequesterFacts, given: SimulatedAction["given"] = {}): SimulatedAction {
    const id = `simulated-${String(this.actions.length).padStart(6, "0")}`;
    const text = encodeRequest(request).text;
    const { evaluation, facts, needs } = this.collectFacts(request, basis, given, id, null);
    const rejection = this.findRejection(text);
    let decision = this.decide(evaluation, facts);
    if (decision.effect === "require_approval" && rejection !== null) {
      const more = { ...facts, rejection };
      decision = this.decide(new Evaluation(this.compiled, request, more, this.now), more);
    }
    const { approval } = decision;
    const action: SimulatedAction = {
      id,
      agent_id: request.agent_id,
      tool: request.tool,
      operation: request.operation,
      request: applyDecisionObligations(request, decision) ?? request,
      text,
      given,
      basis: { ...basis, ...(facts.limits === undefined ? {} : { limits: facts.limits }) },
      status: STATUS_OF[decision.effect],
      decision: decision.effect,
      reason_code: decision.reason_code,
      expires_at: approval === null ? null : this.now + approval.expires_in_ms,
      approved_until: decision.effect === "allow" ? this.now + ALLOWED_MS : null,
      started_at: null,
      result: null,
      approvers: approval?.approvers ?? null,
      since: this.now,
      terms: approval,
      votes: [],
      rejections: [],
      wasStartable: decision.effect === "allow",
    };
    this.actions.push(action);
    for (const { policy, limit, subject, amount, usage } of selectCountedLimits(decision, needs))
      this.uses.push({ policy, limit, subject, amount, usage, action, at: this.now, isReported: false });
    for (const { policy, basis: of, subject } of findMemberships(evaluation, decision.effect))
      this.past.push({ policy, basis: of, subject, action, at: this.now });
    return action;
  }

  /** Evaluates the action again and then counts an approval. Throws StepRefusedError. */
  approve(action: SimulatedAction, voter: SimulatedVoter): void {
    this.assertMayVote(action, voter);
    const decision = this.redecide(action);
    if (decision.effect === "deny") this.deny(action, decision);
    const approvers = combinePlans([...(action.approvers ?? []), ...(decision.approval?.approvers ?? [])]);
    const isStricter = !areSamePlans(approvers, action.approvers ?? []);
    const since = isStricter ? this.now : action.since;
    assertMayConfirm(action, voter, approvers);
    const vote = toVote(action, voter, this.now);
    const counts = (plan: ApproverPlan): boolean =>
      evaluatePlanProgress(plan, [...action.votes, vote], since, this.now).counted.has(action.votes.length);
    if (!approvers.some(counts))
      throw new StepRefusedError("APPROVER_NOT_ELIGIBLE", `the approval of ${voter.owner} would not count`);
    const validFor = Math.min(
      ...[action.terms, decision.approval].filter((each) => each !== null).map(approvalValidityMs),
    );
    if (isStricter) this.requireMore(action, approvers, decision.approval);
    action.votes.push(vote);
    if (!satisfiesPlans(approvers, action.votes, since, this.now)) return;
    action.status = "approved";
    action.approved_until = this.now + validFor;
    action.wasStartable = true;
  }

  /** Rejects the action. Throws StepRefusedError. */
  reject(action: SimulatedAction, voter: SimulatedVoter): void {
    this.assertMayVote(action, voter);
    const until = this.now + rejectionHoldMs(action.terms);
    const approver = voter.owner;
    if (until > this.now)
      action.rejections.push({
        until,
        rejection: { action_id: action.id, approver, comment: null, at: toRfc3339(this.now), until: toRfc3339(until) },
      });
    this.endPending(action, "denied");
  }

  /** Starts the action if the policies still allow it. Throws StepRefusedError. */
  start(action: SimulatedAction): void {
    const { status, approved_until } = action;
    if (status === "expired" && approved_until !== null)
      throw new StepRefusedError("START_EXPIRED", "its time to start is over");
    if ((status !== "allowed" && status !== "approved") || approved_until === null)
      throw new StepRefusedError("ACTION_NOT_STARTABLE", `the action is ${status}`);
    if (approved_until <= this.now) throw new StepRefusedError("START_EXPIRED", "its time to start is over");
    const decision = this.redecide(action);
    if (decision.effect === "deny") this.deny(action, decision);
    const { approval } = decision;
    if (approval !== null && !satisfiesPlans(approval.approvers, action.votes, action.since, this.now)) {
      this.requireMore(action, combinePlans([...(action.approvers ?? []), ...approval.approvers]), approval);
      action.status = "pending_approval";
      action.expires_at = this.now + approval.expires_in_ms;
      action.approved_until = null;
      throw new StepRefusedError(
        "MORE_APPROVALS_NEEDED",
        `the policies now require more approvals: ${decision.reason}`,
      );
    }
    action.status = "executing";
    action.started_at = this.now;
    this.moveInHistories(action);
  }

  /** Records the result. Throws StepRefusedError. */
  finish(
    action: SimulatedAction,
    { success = true, result = {}, usage: amounts = {} }: Pick<ScenarioStep, "success" | "result" | "usage">,
  ): void {
    if (action.status !== "executing" && action.status !== "unknown")
      throw new StepRefusedError("ACTION_NOT_STARTED", `the action is ${action.status}`);
    action.status = success ? "succeeded" : "failed";
    action.result = toStoredResult(success, result as JsonObject);
    for (const use of this.uses) {
      const amount = use.action === action && use.usage !== undefined ? amounts[use.usage.name] : undefined;
      if (amount !== undefined)
        Object.assign(use, { amount: amountToMicros(amount) ?? use.amount, at: this.now, isReported: true });
    }
  }

  /**
   * Cancels the action as an operator, who can also cancel an approved action that has not started. Throws
   * StepRefusedError.
   */
  cancel(action: SimulatedAction): void {
    const { status, approved_until } = action;
    const isStartable = (status === "allowed" || status === "approved") && (approved_until ?? 0) > this.now;
    if (!isStartable) assertPending(action);
    this.endPending(action, "cancelled", isStartable);
  }

  private decide(evaluation: Evaluation, facts: Facts): Decision {
    const { decision } = decideForEntry(evaluation, facts);
    this.decisions.push({ decision, request: evaluation.request, facts, now: this.now });
    return decision;
  }

  /** @param counted the usage of limits at the submission, for an action that is evaluated again */
  private collectFacts(
    request: ActionRequest,
    basis: RequesterFacts,
    given: SimulatedAction["given"],
    actionId: string,
    counted: Facts | null,
  ): { evaluation: Evaluation; facts: Facts; needs: readonly MatchedLimit[] } {
    const { suggested } = this.compiled;
    const base: Facts = { ...basis, ...(suggested.length === 0 ? {} : { suggested: [...suggested] }) };
    const first = new Evaluation(this.compiled, request, base, this.now);
    const history = findHistoryReads(first).map((read) =>
      toHistoryFact(read, read.span === null ? [] : this.readPast(read.span), first, actionId),
    );
    const remembered = history.length === 0 ? base : { ...base, history };
    const factsSoFar = withGivenFacts(this.compiled, request, remembered, this.now, given);
    const evaluation = factsSoFar === base ? first : first.withFacts(factsSoFar);
    const effects = findEffects(evaluation).flatMap(
      (effect) =>
        toEffectFact(effect, typeof effect.span === "string" ? [] : this.readPast(effect.span), this.now, actionId) ??
        [],
    );
    const all = effects.length === 0 ? factsSoFar : { ...factsSoFar, effects };
    const needs = findMatchedLimits(evaluation);
    const limits = needs.map((need) => {
      const recorded = counted === null ? null : findRecordedUsage(counted, need);
      const reported = recorded === null || need.usage === undefined ? 0 : this.readUse(need, true);
      const used = recorded === null ? this.readUse(need) : Math.max(recorded, reported);
      return { policy: need.policy, limit: need.limit, basis: need.basis, used };
    });
    return { evaluation, facts: limits.length === 0 ? all : { ...all, limits }, needs };
  }

  /** Evaluates an open action again. Uses the limit usage of the submission, because the action already counts. */
  private redecide({ basis, request, given, id }: SimulatedAction): Decision {
    const { limits: _, ...otherFacts } = basis;
    const { evaluation, facts } = this.collectFacts(request, { ...otherFacts, final_request: true }, given, id, basis);
    return this.decide(evaluation, facts);
  }

  private readUse({ policy, limit, subject, since, unit }: MatchedLimit, onlyReported = false): number {
    const used = this.uses.filter(
      (use) =>
        use.policy === policy &&
        use.limit === limit &&
        use.subject === subject &&
        use.at >= since &&
        (use.isReported || !onlyReported),
    );
    return unit === "count" ? used.length : used.reduce((sum, { amount }) => sum + amount, 0);
  }

  private readPast({ policy, basis, subject, since, limit }: HistorySpan): PastActionRow[] {
    return this.past
      .filter((item) => item.policy === policy && item.basis === basis && item.subject === subject && item.at >= since)
      .sort((a, b) => b.at - a.at || (a.action.id < b.action.id ? 1 : -1))
      .slice(0, limit)
      .map(({ action, at }) => ({
        ...action,
        request: encodeRequest(action.request).text,
        effective: null,
        result: action.result,
        erased_at: null,
        at,
      }));
  }

  private findRejection(text: string): RejectionFact | null {
    const active = this.actions
      .filter((action) => action.text === text)
      .flatMap(({ rejections }) => rejections)
      .filter(({ until }) => until > this.now);
    return active.at(-1)?.rejection ?? null;
  }

  private assertMayVote(action: SimulatedAction, voter: SimulatedVoter): void {
    assertPending(action);
    assertMayConfirm(action, voter, action.approvers ?? []);
    if (action.votes.some(({ principals }) => principals.includes(voter.owner)))
      throw new StepRefusedError("ALREADY_VOTED", `${voter.owner} has already voted on this action`);
  }

  /** Denies an action that the policies no longer allow. Throws StepRefusedError with the service's error code. */
  private deny(action: SimulatedAction, { reason }: Decision): never {
    action.reason_code = "NO_LONGER_ALLOWED";
    this.endPending(action, "denied");
    throw new StepRefusedError("NO_LONGER_ALLOWED", `the policies now deny the action: ${reason}`);
  }

  private requireMore(action: SimulatedAction, approvers: ApproverPlan[], terms: RequiredApproval | null): void {
    action.approvers = approvers;
    action.since = this.now;
    action.terms = terms ?? action.terms;
    action.reason_code = "MORE_APPROVALS_NEEDED" satisfies ReasonCode;
    this.moveInHistories(action);
  }

  private moveInHistories(action: SimulatedAction): void {
    for (const item of this.past) if (item.action === action) item.at = this.now;
  }

  /** Ends the action. It still counts against limits if it could have run. */
  private endPending(action: SimulatedAction, status: ActionStatus, isWithdrawn = false): void {
    action.status = status;
    if (!action.wasStartable || isWithdrawn) this.uses = this.uses.filter((use) => use.action !== action);
  }
}

function assertPending({ status, approved_until }: SimulatedAction): void {
  if (status === "expired" && approved_until === null)
    throw new StepRefusedError("APPROVAL_EXPIRED", "its time to be approved is over");
  if (status !== "pending_approval") throw new StepRefusedError("ACTION_NOT_PENDING", `the action is ${status}`);
}

/**
 * Throws StepRefusedError if the voter is the person behind the agent, unless every rule allows self-confirmation and
 * the vote is signed with a passkey. Also throws if a rule requires a signature and the vote has none.
 */
function assertMayConfirm(action: SimulatedAction, voter: SimulatedVoter, plans: readonly ApproverPlan[]): void {
  const self = selfRelation(action, voter);
  if (self !== null && !(strictestOversightMode(plans) === "self_confirm" && self === "same_owner" && voter.signed))
    throw new StepRefusedError("SELF_APPROVAL", SELF_RELATION_REASONS[self]);
  if (requiresSignature(plans) && !voter.signed)
    throw new StepRefusedError("VOTE_SIGNATURE_REQUIRED", "the rule requires a vote that is signed with a passkey");
}

function selfRelation({ request, basis: { principal } }: SimulatedAction, { owner }: SimulatedVoter) {
  const voter = { key_id: `key of ${owner}`, agent_id: null, owner };
  return findSelfRelation(principal, request.agent_id, voter);
}

function toVote(action: SimulatedAction, voter: SimulatedVoter, at: number): CountedVote {
  return {
    principals: [voter.owner],
    groups: voter.groups,
    independent: action.basis.principal.owner !== null && !voter.sharesGroup,
    self: selfRelation(action, voter) !== null,
    signed: voter.signed,
    break_glass: false,
    at,
  };
}
