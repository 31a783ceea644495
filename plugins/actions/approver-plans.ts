/** Determines whose votes count for an action: groups, the requester's groups, and the oversight mode of its rules. */
import { Refusal } from "../../src/plugin.ts";
import {
  userState,
  type Actor,
  type ApprovalRequirement,
  type ApproverPlan,
  type CoreHost,
  type CountedVote,
  evaluatePlanProgress,
  type VoteSignature,
  listKeyMakers,
  strictestOversightMode,
  principalOfUser,
  type RecordedApproval,
  type Snapshot,
  type SubmittedAction,
  requiresSignature,
  SELF_RELATION_REASONS,
  type SelfRelation,
  userOfPrincipal,
} from "../../src/core.ts";
import { listSubmitters } from "./self-approval.ts";
import { principalsBehindVote, principalsOfKeys } from "./vote-principals.ts";

/** Adds to each vote the principals that share it: those of its approver and of the user who delegated to them. */
export function toCountedVotes(host: CoreHost, approvals: readonly RecordedApproval[]): CountedVote[] {
  return approvals.map((vote) => ({ ...vote, principals: principalsOfVote(host, vote, vote.on_behalf_of) }));
}

/**
 * Returns the principals that share a vote.
 * @param delegator principal of the user on whose behalf the vote is cast
 */
export function principalsOfVote(
  host: CoreHost,
  vote: Pick<Actor, "principal" | "key_id">,
  delegator: string | null,
): string[] {
  const voterPrincipals = principalsBehindVote(host, vote);
  const id = delegator === null ? null : userOfPrincipal(delegator);
  if (delegator === null || id === null) return voterPrincipals;
  return [...voterPrincipals, ...principalsBehindVote(host, { principal: delegator, key_id: id })];
}

/** An approver: the principal of the vote, the key or user, and the groups. */
interface Approver {
  principal: string;
  key_id: string;
  groups: readonly string[];
}

/** The current time and users, within a ledger transaction or from a consistent read. */
export type VoteMoment = Snapshot;

/**
 * Returns the groups and rotas of the approver for which a vote on this action can count. Also returns whether the
 * requester is outside all groups of the approver. Under an authority, both must hold for each agent of the chain.
 * @param moment the time, which determines who is on call, and the users at that time
 * @param only restricts the returned groups and rotas; null for all
 */
export function readApproverEligibility(
  host: CoreHost,
  row: SubmittedAction,
  approver: Approver,
  plans: readonly ApproverPlan[],
  moment: VoteMoment,
  only: readonly string[] | null = null,
): Pick<CountedVote, "groups" | "independent"> {
  const submitters = listSubmitters(row);
  const named = listRequiredGroups(plans).filter((group) => only?.includes(group) ?? true);
  const groups = [...approver.groups, ...rotasOf(host, approver, moment)].sort();
  return {
    groups: groups.filter(
      (group) => named.includes(group) && submitters.every((submitter) => host.groups.covers(group, submitter)),
    ),
    independent: submitters.every((submitter) => isIndependent(host, submitter, approver.groups, moment)),
  };
}

/**
 * Returns the rotas in which the approver is on call. A key that users created is on call only while those users are on
 * call.
 */
function rotasOf(host: CoreHost, { principal, key_id }: Approver, { now, state }: VoteMoment): string[] {
  const users = state(userState);
  const makers = listKeyMakers(key_id, (id) => host.keys.recordedKey(id))
    .filter(({ isUser }) => isUser === true)
    .map(({ id }) => host.groups.onCall(principalOfUser(id), now, users));
  return host.groups.onCall(principal, now, users).filter((rota) => makers.every((rotas) => rotas.includes(rota)));
}

/**
 * Returns true if the requester is in none of the groups. Counts the groups of the key's owner, and of the people who
 * created the key (unless `approvals.trust_key_makers` is set). Returns false if no user owns the submitting key,
 * because the requester is then unknown.
 */
function isIndependent(
  host: CoreHost,
  row: SubmittedAction,
  groups: readonly string[],
  { state }: VoteMoment,
): boolean {
  const owner = row.submitted_owner;
  const users = state(userState);
  if (owner === null || !users.has(userOfPrincipal(owner) ?? "")) return false;
  const makers = host.config.approvals.trust_key_makers
    ? []
    : listKeyMakers(row.submitted_by, (id) => host.keys.recordedKey(id));
  const requester = new Set([owner, ...principalsOfKeys(makers)].flatMap((each) => host.groups.of(each, users)));
  return !groups.some((group) => requester.has(group));
}

/**
 * Returns true if the action's key, and each key that gave an authority for it, has an owner. Otherwise, no vote counts
 * as independent of the requester.
 */
export function isRequesterKnown(row: SubmittedAction, { state }: VoteMoment): boolean {
  const users = state(userState);
  return listSubmitters(row).every((submitter) => users.has(userOfPrincipal(submitter.submitted_owner ?? "") ?? ""));
}

/**
 * Throws SELF_APPROVAL for a vote by the agent, by the person behind the agent, or by someone who might be that person.
 * Exception: if every rule has the mode `self_confirm`, the person behind the agent may vote with a passkey signature.
 * Throws VOTE_SIGNATURE_REQUIRED if a rule requires a signature and the vote has none.
 * @param self the voter's relation to the submitter; null if the voter is someone else
 * @param gesture the verified signature of this vote
 */
export function assertMeetsOversightMode(
  { self, gesture }: { self: SelfRelation | null; gesture: VoteSignature | null },
  plans: readonly ApproverPlan[],
): void {
  if (self !== null && !maySelfConfirm(self, plans))
    throw new Refusal("SELF_APPROVAL", `${SELF_RELATION_REASONS[self]}; someone else must vote`);
  if (gesture !== null) return;
  if (self !== null)
    throw new Refusal(
      "SELF_APPROVAL",
      `${SELF_RELATION_REASONS[self]}; sign in and confirm it with a passkey, or let someone else vote`,
    );
  if (requiresSignature(plans))
    throw new Refusal(
      "VOTE_SIGNATURE_REQUIRED",
      "the rule requires a vote that is signed with a passkey (approval.signature); sign in at /sign-in and vote with your passkey. A key, a link and the command line cannot sign",
    );
}

/** Returns true if every rule lets the person behind the agent confirm an action. */
export function maySelfConfirm(self: SelfRelation, plans: readonly ApproverPlan[]): boolean {
  return strictestOversightMode(plans) === "self_confirm" && (self === "same_owner" || self === "same_maker");
}

/**
 * Returns why an approving vote would not count; null if it would count.
 * @param votes the earlier votes
 * @param isRequesterKnown as `isRequesterKnown` returns for the action
 */
export function findVoteIneligibility(
  { approvers, since }: ApprovalRequirement,
  votes: readonly CountedVote[],
  vote: CountedVote,
  { now, isRequesterKnown }: { now: number; isRequesterKnown: boolean },
): VoteIneligibility | null {
  if (countPlansAcceptingVote({ approvers, since }, votes, vote, now) > 0) return null;
  const open = approvers.map((plan) => ({ plan, groups: evaluatePlanProgress(plan, votes, since, now).open }));
  const groups = [...new Set(open.flatMap((each) => each.groups))];
  const names = groups.filter((group) => group !== null).map((group) => `"${group}"`);
  const excluded = !vote.independent && open.some(({ plan }) => plan.exclude_requester_groups);
  if (excluded && !isRequesterKnown)
    return {
      refusal: new Refusal(
        "APPROVER_NOT_ELIGIBLE",
        "the rule excludes members of the requester's groups, which are unknown because the key that submitted the action has no owner, so no one can approve it. Create a key of the agent with an owner, and let the agent submit the action again",
      ),
      groups: [],
    };
  const people = names.length === 0 ? "other people" : `members of ${names.join(", ")}`;
  const reason = excluded
    ? "the rule excludes members of the requester's groups, and you, or the user for whom you would vote, are one"
    : names.length === 0
      ? "your vote would not count"
      : "you are in none of the groups that can approve now, or your group does not cover this agent and tool";
  const detail = `${reason}; ${people} can approve this action now`;
  return { refusal: new Refusal("APPROVER_NOT_ELIGIBLE", detail), groups };
}

/** The reason why a vote would not count, and the groups whose votes would count. */
export interface VoteIneligibility {
  refusal: Refusal;
  groups: (string | null)[];
}

/**
 * Returns the number of plans that count the vote in addition to the earlier votes. All plans count a break-glass vote.
 */
export function countPlansAcceptingVote(
  { approvers, since }: ApprovalRequirement,
  votes: readonly CountedVote[],
  vote: CountedVote,
  now: number,
): number {
  if (vote.break_glass) return approvers.length;
  const all = [...votes, vote];
  return approvers.filter((plan) => evaluatePlanProgress(plan, all, since, now).counted.has(votes.length)).length;
}

/** Returns the groups in the plans. Sorted. */
function listRequiredGroups(plans: readonly ApproverPlan[]): string[] {
  const groups = plans.flatMap(({ stages }) => stages.flatMap(({ approvers }) => approvers.map(({ group }) => group)));
  return [...new Set(groups.filter((group) => group !== null))].sort();
}
