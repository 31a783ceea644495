/** Determines whose votes count for an action: groups, the requester's groups, and the oversight mode of its rules. */
import { type Credential, Refusal } from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import {
  type ApprovalRequirement,
  type ApproverPlan,
  type CoreHost,
  type CountedVote,
  evaluatePlanProgress,
  type Gesture,
  listKeyMakers,
  strictestOversightMode,
  namedGroups,
  principalOfOwner,
  principalOfUser,
  principalsBehindVote,
  principalsOfKeys,
  type RecordedApproval,
  requiresSignature,
  SELF_RELATION_REASONS,
  type SelfRelation,
} from "../../src/core.ts";
import type { SubmittedAction } from "./self-approval.ts";

/** Adds the principals that share each vote. */
export function countedVotes(host: CoreHost, approvals: readonly RecordedApproval[]): CountedVote[] {
  return approvals.map((vote) => ({ ...vote, principals: principalsBehindVote(host, vote) }));
}

/** An approver: the principal of the vote, the key or user, and the groups. */
export interface Approver {
  principal: string;
  key_id: string;
  groups: readonly string[];
}

/**
 * Returns the groups and rotas of the approver for which a vote on this action can count, and whether the requester is in
 * none of the groups.
 * @param at time of the vote, which decides who is on call. Milliseconds
 */
export function readApproverStanding(
  host: CoreHost,
  row: SubmittedAction,
  approver: Approver,
  plans: readonly ApproverPlan[],
  at: number,
): Pick<CountedVote, "groups" | "independent"> {
  const named = namedGroups(plans);
  const groups = [...approver.groups, ...rotasOf(host, approver, at)].sort();
  return {
    groups: groups.filter((group) => named.includes(group) && host.groups.covers(group, row)),
    independent: isIndependent(host, row, approver.groups),
  };
}

/**
 * Returns the rotas in which the approver is on call. A key that users created is on call only while those users are.
 */
function rotasOf(host: CoreHost, { principal, key_id }: Approver, at: number): string[] {
  const makers = listKeyMakers(key_id, (id) => host.keys.recordedKey(id))
    .filter(({ isUser }) => isUser === true)
    .map(({ id }) => host.groups.onCall(principalOfUser(id), at));
  return host.groups.onCall(principal, at).filter((rota) => makers.every((rotas) => rotas.includes(rota)));
}

/** False if the requester is unknown, because the submitting key has no owner. */
function isIndependent(host: CoreHost, row: SubmittedAction, groups: readonly string[]): boolean {
  if (row.submitted_owner === null) return false;
  const makers = host.config.approvals.trust_key_makers
    ? []
    : principalsOfKeys(listKeyMakers(row.submitted_by, (id) => host.keys.recordedKey(id)));
  const requester = new Set(
    [principalOfOwner(row.submitted_owner), ...makers].flatMap((principal) => host.groups.of(principal)),
  );
  return !groups.some((group) => requester.has(group));
}

/**
 * Throws SELF_APPROVAL unless the voter is someone else, or the person behind the agent who signs the vote with a passkey
 * where every rule has the mode `self_confirm`. The agent's own key never can. Throws VOTE_SIGNATURE_REQUIRED if a rule
 * requires a signature and there is none.
 * @param gesture the verified signature of this vote
 */
export function assertMayConfirm(
  { self, gesture }: { self: SelfRelation | null; gesture: Gesture | null },
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

function maySelfConfirm(self: SelfRelation, plans: readonly ApproverPlan[]): boolean {
  return strictestOversightMode(plans) === "self_confirm" && (self === "same_owner" || self === "same_maker");
}

/** Returns the refusal of an approving vote that would not count; null if it counts. @param votes the earlier votes */
export function findIneligibility(
  { approvers, since }: ApprovalRequirement,
  votes: readonly CountedVote[],
  vote: CountedVote,
  now: number,
): { refusal: Refusal; groups: (string | null)[] } | null {
  const all = [...votes, vote];
  if (approvers.some((plan) => evaluatePlanProgress(plan, all, since, now).counted.has(votes.length))) return null;
  const open = approvers.map((plan) => ({ plan, groups: evaluatePlanProgress(plan, votes, since, now).open }));
  const groups = [...new Set(open.flatMap((each) => each.groups))];
  const names = groups.filter((group) => group !== null).map((group) => `"${group}"`);
  const excluded = !vote.independent && open.some(({ plan }) => plan.exclude_requester_groups);
  const who = names.length === 0 ? "other people" : `members of ${names.join(", ")}`;
  const why = excluded
    ? "the rule excludes members of the requester's groups, and you are one, or the submitting key has no owner"
    : names.length === 0
      ? "your vote would not count"
      : "you are in none of the groups whose approval is missing, or your group does not cover this agent and tool";
  const detail = `${why}; ${who} can approve this action now`;
  return { refusal: new Refusal("APPROVER_NOT_ELIGIBLE", detail), groups };
}

/** Returns why the credential cannot approve the action now, for the action's record; null if it can. */
export function approvalBlock(
  host: CoreHost,
  row: ActionRow,
  credential: Credential,
  {
    requirement,
    approvals,
    self,
  }: { requirement: ApprovalRequirement; approvals: readonly RecordedApproval[]; self: SelfRelation | null },
): { code: string; detail: string; groups: (string | null)[] } | null {
  const { principal, key } = credential;
  const plans = requirement.approvers;
  if (self !== null && !maySelfConfirm(self, plans))
    return { code: "SELF_APPROVAL", detail: SELF_RELATION_REASONS[self], groups: [] };
  if (approvals.some((vote) => vote.principal === principal))
    return { code: "ALREADY_VOTED", detail: `${principal} has already voted on this action`, groups: [] };
  const now = host.clock();
  const vote = {
    ...readApproverStanding(host, row, { principal, key_id: key.id, groups: credential.groups }, plans, now),
    principals: principalsBehindVote(host, { principal, key_id: key.id }),
    self: self !== null,
    // Whether the vote will be signed is only known when it is cast.
    signed: true,
    at: now,
  };
  const ineligible = findIneligibility(requirement, countedVotes(host, approvals), vote, now);
  if (ineligible === null) return null;
  const { refusal, groups } = ineligible;
  return { code: refusal.code, detail: refusal.message, groups };
}
