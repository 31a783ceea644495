/**
 * Plans: ordered lists of actions that were submitted at once. People approve the list of the remaining actions, and
 * their approval becomes void when that list changes. Each action is evaluated and started by itself, and its result is
 * reported by itself.
 */
import {
  type ACTION_STATUSES,
  type ActionHistory,
  actionStatusAt,
  canonicalText,
  type RecordedApproval,
  sha256Hex,
  utf8,
} from "../../src/core.ts";

type ActionStatus = (typeof ACTION_STATUSES)[number];

/** Largest number of actions in a plan. */
export const MAX_PLAN_ACTIONS = 100;

/** The plan's id and the terms that its submitter chose. */
export interface PlanTerms {
  id: string;
  ordered: boolean;
  stop_on_failure: boolean;
}

/** The state of one action of a plan. */
export interface PlanMember {
  action_id: string;
  /** Position in the plan, starting at 1. */
  position: number;
  /** Commitment to the effective request. Lowercase hex. */
  commitment: string;
  status: ActionStatus;
  /** Digest of the list that the last approving vote contains; null unless the action was approved with the plan. */
  approved: string | null;
}

/** The reason why an action of a plan cannot start. */
export interface PlanObstacle {
  /** `waiting`: an earlier action has not ended. `stopped`: the plan has stopped; see `findPlanFailure`. */
  kind: "waiting" | "stopped";
  /** The action that prevents the start. */
  by: PlanMember;
}

const REMOVED: readonly ActionStatus[] = ["denied", "cancelled", "expired"];
const RAN: readonly ActionStatus[] = ["executing", "unknown", "succeeded", "failed"];
const OVER: readonly ActionStatus[] = [...REMOVED, "succeeded", "failed"];

/** Returns the members that can still run or have run. Omits members that were denied, were cancelled, or expired. */
export function remainingMembers(members: readonly PlanMember[]): PlanMember[] {
  return members.filter(({ status }) => !REMOVED.includes(status));
}

/**
 * Returns SHA-256 of `assent-plan/1`, a line feed and the canonical JSON of the plan's terms and its remaining actions,
 * in order. Lowercase hex.
 */
export function actionListDigest({ id, ordered, stop_on_failure }: PlanTerms, members: readonly PlanMember[]): string {
  const actions = remainingMembers(members).map(({ action_id, commitment, position }) => ({
    action_id,
    commitment,
    position,
  }));
  return sha256Hex(utf8(`assent-plan/1\n${canonicalText({ actions, id, ordered, stop_on_failure })}`));
}

/**
 * Returns the action at which the plan stopped; null if it has not stopped. A plan with `stop_on_failure` stops when an
 * action fails or its outcome is unknown. It also stops when an action is denied, is cancelled or expires, unless
 * people have since approved the list without it.
 */
export function findPlanFailure(terms: PlanTerms, members: readonly PlanMember[]): PlanMember | null {
  if (!terms.stop_on_failure) return null;
  const digest = actionListDigest(terms, members);
  const isApproved = members.some(({ approved }) => approved === digest);
  const isFailure = ({ status }: PlanMember): boolean =>
    status === "failed" || status === "unknown" || (REMOVED.includes(status) && !isApproved);
  return members.find(isFailure) ?? null;
}

/** Returns the obstacle to starting the action at `position` now; null if the plan permits the start. */
export function findPlanObstacle(
  terms: PlanTerms,
  members: readonly PlanMember[],
  position: number,
): PlanObstacle | null {
  const failed = findPlanFailure(terms, members);
  if (failed !== null) return { kind: "stopped", by: failed };
  if (!terms.ordered) return null;
  const open = members.find((member) => member.position < position && !OVER.includes(member.status));
  return open === undefined ? null : { kind: "waiting", by: open };
}

/**
 * Returns the member with its status at `now` (milliseconds), after applying its deadlines. Throws if the action is not
 * part of a plan.
 */
export function toPlanMember({ action, approvals, commitment }: PlanMemberHistory, now: number): PlanMember {
  const { id, plan_position: position } = action;
  if (position === null) throw new RangeError(`the action ${id} belongs to no plan`);
  const status = actionStatusAt(action, now);
  const approved = status === "approved" || RAN.includes(status) ? (approvals.at(-1)?.plan ?? null) : null;
  return { action_id: id, position, commitment, status, approved };
}

/** The members of an action's history that determine its plan member. */
export interface PlanMemberHistory extends Pick<ActionHistory, "commitment"> {
  /** The approving votes, in order. */
  approvals: readonly Pick<RecordedApproval, "plan">[];
  action: Pick<ActionHistory["action"], "id" | "plan_position" | "status" | "expires_at" | "approved_until">;
}
