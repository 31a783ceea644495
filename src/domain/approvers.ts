/**
 * Determines whether the votes on an action satisfy its approval. Pure: votes, terms and times are the only inputs, so
 * the audit computes the same result.
 *
 * A plan is the approval that one rule requires. Its stages must be satisfied in order. A stage with `after_ms` is an
 * alternative that opens if the earlier stages take too long. Within a stage, each vote satisfies at most one
 * requirement. Votes are assigned by a maximum matching, so the result does not depend on the order of votes and
 * requirements.
 */
import { canonicalText } from "./canonical.ts";
import type { JsonValue } from "./json.ts";
import { isOfUnknownPerson } from "./vote-people.ts";

/**
 * Who may confirm an action. `maker_checker`: only someone other than the person behind the agent. `self_confirm`: the
 * person behind the agent, too, if they sign with a passkey.
 */
export type OversightMode = "maker_checker" | "self_confirm";

/**
 * Requires `count` different members of the group. If `group` is null, requires `count` different people of any group
 * or none.
 */
export interface ApproverRequirement {
  count: number;
  group: string | null;
}

interface ApproverStage {
  /**
   * Delay after which the stage opens as an alternative to the previous stage, counted from the opening of the previous
   * stage. Milliseconds. If null, the stage opens when the previous stage is satisfied.
   */
  after_ms: number | null;
  approvers: ApproverRequirement[];
  /** Channels that are notified when the stage opens. Absent if no channel is notified. */
  notify?: string[];
}

/** Votes that one rule requires, in stages. */
export interface ApproverPlan {
  /** Whether members of the requester's groups do not count. */
  exclude_requester_groups: boolean;
  mode: OversightMode;
  /** Present if each vote must be signed with a passkey. */
  signature?: "passkey";
  stages: ApproverStage[];
}

/** An approving vote, as its entry records it. */
export interface CountedVote {
  /** Principals that share the vote. Votes with a common principal count as votes of one person. */
  principals: readonly string[];
  /** Groups that the vote can count for. */
  groups: readonly string[];
  /** Whether the approver was in none of the requester's groups. False if the requester's groups were unknown. */
  independent: boolean;
  /** Whether this is the vote of the person behind the agent. */
  self: boolean;
  /** Whether the approver signed the vote with a passkey. */
  signed: boolean;
  /** Whether the approver approved without a second approver (break-glass). */
  break_glass: boolean;
  /** Milliseconds since the epoch. */
  at: number;
}

interface PlanProgress {
  isMet: boolean;
  /** Indexes of the votes that counted. */
  counted: ReadonlySet<number>;
  /** Groups whose votes would count now; null means anyone's vote. Sorted, null first. */
  open: readonly (string | null)[];
  /** Number of satisfied steps. A stage and its alternatives are one step. */
  steps: number;
  /** The stages of the first unsatisfied step, including stages that open later. */
  stages: readonly Pick<OpenStage, "opensAt" | "notify">[];
}

interface OpenStage {
  /** Time when the stage opens. Milliseconds. */
  opensAt: number;
  /** Channels that are notified when the stage opens. */
  notify: readonly string[];
  /** The group of each required vote. */
  slots: (string | null)[];
  /** For each slot, the groups of the vote that fills it. */
  filled: (readonly string[] | null)[];
}

/** Returns the plan for `quorum: n`, which requires n people of any group. */
export function createQuorumPlan(count: number, mode: OversightMode = "maker_checker"): ApproverPlan {
  return {
    exclude_requester_groups: false,
    mode,
    stages: [{ after_ms: null, approvers: [{ count, group: null }] }],
  };
}

/**
 * Applies the votes to a plan in their order.
 * @param since the time at which the first stage opened. Earlier votes count as cast at that time
 */
export function evaluatePlanProgress(
  plan: ApproverPlan,
  votes: readonly CountedVote[],
  since: number,
  now: number,
): PlanProgress {
  const counted = new Set<number>();
  const people = new Set<string>();
  const steps = stepsOf(plan);
  let step = 0;
  let stages = openStages(steps[0] ?? [], since);
  const someoneIsKnown = votes.some(({ principals }) => !isOfUnknownPerson(principals));
  for (const [i, vote] of votes.entries()) {
    if (step === steps.length) break;
    if (someoneIsKnown && isOfUnknownPerson(vote.principals)) continue;
    if (plan.signature === "passkey" && !vote.signed) continue;
    if ((vote.self && plan.mode !== "self_confirm") || (plan.exclude_requester_groups && !vote.independent)) continue;
    if (vote.principals.some((principal) => people.has(principal))) continue;
    const at = Math.max(vote.at, since);
    const filled = stages.filter((stage) => stage.opensAt <= at && fillSlot(stage, vote.groups));
    if (filled.length === 0) continue;
    counted.add(i);
    for (const principal of vote.principals) people.add(principal);
    if (!filled.some(isFull)) continue;
    step++;
    stages = openStages(steps[step] ?? [], at);
  }
  const isMet = step === steps.length;
  return { isMet, counted, open: isMet ? [] : openGroups(stages, now), steps: step, stages };
}

/** Returns true if the votes satisfy every plan, or if one of them is a break-glass approval. */
export function satisfiesPlans(
  plans: readonly ApproverPlan[],
  votes: readonly CountedVote[],
  since: number,
  now: number,
): boolean {
  return (
    votes.some((vote) => vote.break_glass) || plans.every((plan) => evaluatePlanProgress(plan, votes, since, now).isMet)
  );
}

/** Returns the smallest number of people that can satisfy the plan. */
export function countApproversNeeded(plan: ApproverPlan): number {
  return stepsOf(plan).reduce((sum, step) => sum + Math.min(...step.map(({ approvers }) => countVotes(approvers))), 0);
}

/** Returns the channels that stages of the plans notify. Sorted. */
export function listStageChannels(plans: readonly ApproverPlan[]): string[] {
  return [...new Set(plans.flatMap(({ stages }) => stages.flatMap(({ notify = [] }) => notify)))].sort();
}

/**
 * Combines the plans of several rules, so that an approval satisfies all of them. Omits plans that other plans imply.
 */
export function combinePlans(plans: readonly ApproverPlan[]): ApproverPlan[] {
  const byText = new Map(plans.map((plan) => [canonicalText(plan as unknown as JsonValue), plan]));
  const distinct = [...byText.entries()].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)).map(([, plan]) => plan);
  const remainingPlans: ApproverPlan[] = [];
  // Of two plans that imply each other, keep the first.
  for (const plan of distinct)
    if (
      !distinct.some(
        (other) => other !== plan && implies(other, plan) && !(implies(plan, other) && !remainingPlans.includes(other)),
      )
    )
      remainingPlans.push(plan);
  return remainingPlans;
}

/** Returns true if the two lists have the same requirements. */
export function areSamePlans(a: readonly ApproverPlan[], b: readonly ApproverPlan[]): boolean {
  return canonicalText(a as unknown as JsonValue) === canonicalText(b as unknown as JsonValue);
}

/** Returns the stricter mode: `self_confirm` only if every plan has it. */
export function strictestOversightMode(plans: readonly ApproverPlan[]): OversightMode {
  return plans.length > 0 && plans.every(({ mode }) => mode === "self_confirm") ? "self_confirm" : "maker_checker";
}

/** Returns true if each vote must be signed with a passkey. */
export function requiresSignature(plans: readonly ApproverPlan[]): boolean {
  return plans.some(({ signature }) => signature === "passkey");
}

/**
 * Returns true if votes that satisfy `plan` always satisfy `other`. Returns false if `other` has several stages or a
 * group, because only plans for n people of any group are compared.
 */
function implies(plan: ApproverPlan, other: ApproverPlan): boolean {
  const [stage, ...more] = other.stages;
  if (stage === undefined || more.length > 0 || stage.approvers.some(({ group }) => group !== null)) return false;
  if (other.exclude_requester_groups && !plan.exclude_requester_groups) return false;
  if (other.signature !== undefined && plan.signature === undefined) return false;
  if (other.mode === "maker_checker" && plan.mode !== "maker_checker") return false;
  return countApproversNeeded(plan) >= countVotes(stage.approvers);
}

function stepsOf({ stages }: ApproverPlan): ApproverStage[][] {
  const steps: ApproverStage[][] = [];
  for (const stage of stages) {
    const last = steps.at(-1);
    if (stage.after_ms === null || last === undefined) steps.push([stage]);
    else last.push(stage);
  }
  return steps;
}

function openStages(step: readonly ApproverStage[], at: number): OpenStage[] {
  let opensAt = at;
  return step.map(({ after_ms, approvers, notify = [] }, i) => {
    if (i > 0) opensAt += after_ms ?? 0;
    const slots = approvers.flatMap(({ count, group }) => Array<string | null>(count).fill(group));
    return { opensAt, notify, slots, filled: slots.map(() => null) };
  });
}

/**
 * Assigns the vote to a slot, and moves earlier votes to other slots if necessary. Returns false if no slot can be
 * freed.
 */
function fillSlot(stage: OpenStage, groups: readonly string[], tried = new Set<number>()): boolean {
  for (const [i, group] of stage.slots.entries()) {
    if (tried.has(i) || (group !== null && !groups.includes(group))) continue;
    tried.add(i);
    const earlier = stage.filled[i];
    if (earlier != null && !fillSlot(stage, earlier, tried)) continue;
    stage.filled[i] = groups;
    return true;
  }
  return false;
}

const isFull = ({ filled }: OpenStage): boolean => filled.every((groups) => groups !== null);

function openGroups(stages: readonly OpenStage[], now: number): (string | null)[] {
  const open = new Set<string | null>();
  for (const stage of stages) {
    if (stage.opensAt > now) continue;
    for (const group of new Set(stage.slots))
      if (fillSlot({ ...stage, filled: [...stage.filled] }, group === null ? [] : [group])) open.add(group);
  }
  return [...open].sort((a, b) => (a === b ? 0 : a === null ? -1 : b === null ? 1 : a < b ? -1 : 1));
}

function countVotes(approvers: readonly ApproverRequirement[]): number {
  return approvers.reduce((sum, { count }) => sum + count, 0);
}
