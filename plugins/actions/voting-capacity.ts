/**
 * Chooses whether an approver votes only for themselves, or also on behalf of a user who delegated to them. An approval
 * with a delegation counts for the groups of both users, and neither of them can approve the action again.
 */
import {
  type Actor,
  type ApprovalRequirement,
  type ApproverPlan,
  canSee,
  type CoreHost,
  isOfUnknownPerson,
  type CountedVote,
  extendVisibility,
  principalOfUser,
  type RecordedApproval,
  type RecordedEdit,
  rightsReader,
  SELF_RELATION_REASONS,
  type SelfRelation,
  type SubmittedAction,
  userOfPrincipal,
  userState,
  type Visibility,
} from "../../src/core.ts";
import { type Credential, Refusal, type Session } from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import {
  toCountedVotes,
  countPlansAcceptingVote,
  findVoteIneligibility,
  isRequesterKnown,
  type VoteIneligibility,
  maySelfConfirm,
  type VoteMoment,
  principalsOfVote,
  readApproverEligibility,
} from "./approver-plans.ts";
import { isNewPerson } from "./count-people.ts";
import { coversChain, findSelfApproval } from "./self-approval.ts";
import type { VerifiedHistory } from "./verify-record.ts";

/** The person, key or link that is about to vote. */
export interface ProspectiveVoter {
  principal: string;
  key_id: string;
  groups: readonly string[];
  /** Null for a key or a link. Delegations apply only to sessions. */
  session: Session | null;
  self: SelfRelation | null;
}

/** The groups and principals that a vote can count for: with one delegation, or without any. */
export interface VotingCapacity extends Pick<CountedVote, "groups" | "independent" | "principals"> {
  /** The delegation that is used, and the principal of the user who gave it. */
  delegation: { id: string; from: string } | null;
}

/** All capacities in which a vote can count, and the reasons why delegations do not apply. */
interface VotingCapacities {
  /** The capacity without a delegation comes first. */
  capacities: VotingCapacity[];
  /** The reasons, as sentences for the approver. */
  excluded: string[];
  /** False if no rule can know the requester's groups, because the submitting key has no owner. */
  isRequesterKnown: boolean;
}

/** Returns the voter with this credential. */
function prospectiveVoterOf(
  { principal, key, groups, session }: Omit<Credential, "epoch" | "valid_until">,
  self: SelfRelation | null,
): ProspectiveVoter {
  return { principal, key_id: key.id, groups, session: session ?? null, self };
}

/**
 * Returns the capacities in which a vote can count. For this action, the person behind the agent can neither vote by a
 * delegation nor delegate to someone else.
 */
export function findVotingCapacities(
  host: CoreHost,
  row: SubmittedAction,
  voter: ProspectiveVoter,
  plans: readonly ApproverPlan[],
  moment: VoteMoment,
): VotingCapacities {
  const { session, self } = voter;
  const seesItself = session === null || coversChain(session.visibility, row);
  const { groups: own, independent: isIndependent } = readApproverEligibility(host, row, voter, plans, moment);
  const capacities: VotingCapacity[] = seesItself
    ? [{ groups: own, independent: isIndependent, principals: principalsOfVote(host, voter, null), delegation: null }]
    : [];
  const excluded: string[] = session === null || seesItself ? [] : [describeUncovered(session.visibility, row)];
  for (const { delegation, user, groups: theirs, visibility } of self === null ? (session?.delegators ?? []) : []) {
    const from = principalOfUser(user.id);
    const why = coversChain(visibility, row)
      ? findSelfApproval(host, row, { key: { id: user.id, agent_id: null, owner: from } }) === null
        ? null
        : "is the person behind the agent, so no one can approve on their behalf"
      : "delegated other agents and tools to you";
    if (why !== null) excluded.push(`${user.name} (${from}) ${why}`);
    if (why !== null) continue;
    const delegator = { principal: from, key_id: user.id, groups: theirs };
    const eligibility = readApproverEligibility(host, row, delegator, plans, moment, delegation.groups);
    capacities.push({
      groups: [...new Set([...(seesItself ? own : []), ...eligibility.groups])].sort(),
      independent: isIndependent && eligibility.independent,
      principals: principalsOfVote(host, voter, from),
      delegation: { id: delegation.id, from },
    });
  }
  return { capacities, excluded, isRequesterKnown: isRequesterKnown(row, moment) };
}

/** Says why credentials with this visibility, which does not cover the chain of the action, cannot approve it. */
export function describeUncovered(visibility: Visibility, row: SubmittedAction): string {
  return canSee(visibility, row)
    ? "your groups do not cover each agent for which the action is done"
    : "your own groups do not cover this agent and tool";
}

/** Who changed the request; null if nobody did. */
interface Edited {
  edit: Pick<RecordedEdit, "by"> | null;
}

/** Omits capacities that include the person who changed the request, because another person has to approve it. */
export function excludeEditor(
  host: CoreHost,
  { edit }: Edited,
  voter: ProspectiveVoter,
  found: VotingCapacities,
): VotingCapacities {
  const { capacities, excluded } = found;
  if (edit === null || edit.by === null) return found;
  const editor = principalsOfVote(host, edit.by, null);
  const reasons = new Set(excluded);
  const others = capacities.filter((capacity) => {
    if (!isOfUnknownPerson(editor) && isNewPerson([editor], capacity.principals)) return true;
    reasons.add(describeEditorRelation(host, { by: edit.by as Actor, editor }, voter, capacity));
    return false;
  });
  return { ...found, capacities: others, excluded: [...reasons] };
}

/** Says why a vote in this capacity would count as a vote of the person who changed the request. */
function describeEditorRelation(
  host: CoreHost,
  { by, editor }: { by: Actor; editor: readonly string[] },
  voter: ProspectiveVoter,
  { delegation, principals }: VotingCapacity,
): string {
  if (voter.principal === by.principal) return "you changed this request, so someone else must approve it";
  if (isOfUnknownPerson(editor))
    return "the key that changed this request has no owner, so anyone may have used it; reject the request, and let the agent submit it again";
  if (isOfUnknownPerson(principals))
    return "your key has no owner, so it may belong to the person who changed this request; sign in to approve it";
  if (delegation !== null && isNewPerson([editor], principalsOfVote(host, voter, null)))
    return "the user who delegated to you changed this request, so someone else must approve it";
  return `you and the person who changed this request count as one: ${describeOnePerson(editor, principals)}. Someone else must approve it: ${
    shareUser(editor, principals)
      ? "another user, or a key of another user"
      : 'a user who signs in, or a key from another creator ("assent keys create" with --local). The operator can set approvals.trust_key_makers'
  }`;
}

const shareUser = (a: readonly string[], b: readonly string[]): boolean =>
  a.some((principal) => b.includes(principal) && userOfPrincipal(principal) !== null);

/** Says why two credentials, which share a principal, count as one person. */
function describeOnePerson(a: readonly string[], b: readonly string[]): string {
  return shareUser(a, b)
    ? "the same user signed in, owns the keys or created one of them, or one of you voted on behalf of the other"
    : "one key created the other, or both have a common creator";
}

/** The members of a vote that are the same in every capacity. */
type VoteTerms = Pick<CountedVote, "self" | "signed" | "break_glass" | "at">;

/**
 * Returns the capacity in which the vote counts for the most plans. Prefers the capacity without a delegation. If the
 * vote counts for no plan, returns the reason.
 * @param earlier the earlier votes
 */
export function chooseVotingCapacity(
  requirement: ApprovalRequirement,
  earlier: readonly CountedVote[],
  { capacities, excluded, isRequesterKnown }: VotingCapacities,
  terms: VoteTerms,
): { capacity: VotingCapacity; vote: CountedVote } | VoteIneligibility {
  const people = earlier.map(({ principals }) => principals);
  const fresh = capacities.filter(({ principals }) => isNewPerson(people, principals));
  const options = fresh.map((capacity) => ({ capacity, vote: { ...capacity, ...terms } }));
  const counted = options.map(({ vote }) => countPlansAcceptingVote(requirement, earlier, vote, terms.at));
  const best = options[counted.indexOf(Math.max(...counted))];
  const vote = best?.vote ?? null;
  if (best !== undefined && vote !== null) {
    const ineligible = findVoteIneligibility(requirement, earlier, vote, { now: terms.at, isRequesterKnown });
    if (ineligible === null) return best;
    return explain(ineligible, capacities.length > fresh.length ? [...excluded, DELEGATOR_VOTED] : excluded);
  }
  const [capacity] = capacities;
  if (capacity === undefined) return { refusal: new Refusal("APPROVER_NOT_ELIGIBLE", excluded.join("; ")), groups: [] };
  return { refusal: samePersonError(people, capacity), groups: [] };
}

/** Throws ALREADY_VOTED if every possible capacity includes a person who has already approved. */
export function assertPersonHasNotVoted(earlier: readonly CountedVote[], { capacities }: VotingCapacities): void {
  const people = earlier.map(({ principals }) => principals);
  const [capacity] = capacities;
  if (capacity !== undefined && capacities.every(({ principals }) => !isNewPerson(people, principals)))
    throw samePersonError(people, capacity);
}

const DELEGATOR_VOTED = "a user who delegated to you has already voted, so your vote on their behalf would not count";

function explain({ refusal, groups }: VoteIneligibility, reasons: readonly string[]): VoteIneligibility {
  if (reasons.length === 0) return { refusal, groups };
  return { refusal: new Refusal("APPROVER_NOT_ELIGIBLE", [refusal.message, ...reasons].join("; ")), groups };
}

/** @param people principals of the earlier votes */
function samePersonError(people: readonly (readonly string[])[], { principals }: VotingCapacity): Refusal {
  if (isOfUnknownPerson(principals))
    return new Refusal(
      "ALREADY_VOTED",
      "your key has no owner, so an earlier vote may be of the same person. You can still deny. For a second approval, sign in, or use a key with an owner",
    );
  const earlier = people.find((each) => each.some((principal) => principals.includes(principal))) ?? [];
  const isUser = shareUser(earlier, principals);
  return new Refusal(
    "ALREADY_VOTED",
    `your vote and an earlier one count as one person: ${describeOnePerson(earlier, principals)}. You can still deny. For a second approval, ${
      isUser
        ? "another user must vote"
        : "use a key from another creator or a link from a channel, or ask the operator about approvals.trust_key_makers"
    }`,
  );
}

/** What a credential can do about the approval of a pending action. */
interface VotingTerms {
  /** Why the credential cannot approve now; null if it can approve. */
  blocked: { code: string; detail: string; groups: (string | null)[] } | null;
  /** Principal of the user on whose behalf the credential would approve; null without a delegation. */
  on_behalf_of: string | null;
  /** Whether the credential can approve in an emergency, without other approvers. */
  may_break_glass: boolean;
}

/** What decides whether a credential can approve, besides the action itself. */
type VotingHistory = Edited & {
  requirement: ApprovalRequirement;
  approvals: readonly RecordedApproval[];
  self: SelfRelation | null;
};

/** Returns what the credential can do about the approval, for the action's record. */
export function describeVoting(
  host: CoreHost,
  row: ActionRow,
  credential: PendingApprover,
  history: VotingHistory,
  moment: VoteMoment,
): VotingTerms {
  const { found, ...voting } = findVoting(host, row, credential, history, moment, host.guard.findApprovalBlock(row));
  const may_break_glass =
    found !== null &&
    host.soleApproval?.findRefusal(credential, row, history.self) === null &&
    found.capacities.some(({ delegation }) => delegation === null);
  return { ...voting, may_break_glass };
}

/**
 * Returns whether the credential can approve, and the capacities in which a vote would count; null if none would.
 * @param block as for `findVotingBlock`
 */
function findVoting(
  host: CoreHost,
  row: SubmittedAction,
  credential: PendingApprover,
  { requirement, approvals, edit, self }: VotingHistory,
  moment: VoteMoment,
  block: Refusal | null,
): Omit<VotingTerms, "may_break_glass"> & { found: VotingCapacities | null } {
  const refuse = (code: string, detail: string) => ({
    blocked: { code, detail, groups: [] },
    on_behalf_of: null,
    found: null,
  });
  const plans = requirement.approvers;
  if (self !== null && !maySelfConfirm(self, plans)) return refuse("SELF_APPROVAL", SELF_RELATION_REASONS[self]);
  if (approvals.some((vote) => vote.principal === credential.principal))
    return refuse("ALREADY_VOTED", "you have already voted on this action");
  if (block !== null) return refuse(block.code, block.message);
  const voter = prospectiveVoterOf(credential, self);
  const found = excludeEditor(host, { edit }, voter, findVotingCapacities(host, row, voter, plans, moment));
  // It is not known yet whether the vote will be signed, so assume that it will.
  const terms = { self: self !== null, signed: true, break_glass: false, at: moment.now };
  const chosen = chooseVotingCapacity(requirement, toCountedVotes(host, approvals), found, terms);
  if ("capacity" in chosen) return { blocked: null, on_behalf_of: chosen.capacity.delegation?.from ?? null, found };
  const { refusal, groups } = chosen;
  return { blocked: { code: refusal.code, detail: refusal.message, groups }, on_behalf_of: null, found };
}

/** A credential, or a user who does not have to be signed in. */
export type PendingApprover = Omit<Credential, "epoch" | "valid_until">;

/**
 * Returns why the approver cannot approve the action now; null if they can.
 * @param block what `Guard.findApprovalBlock` returned; null to include approvals together with other actions
 */
export function findVotingBlock(
  host: CoreHost,
  row: SubmittedAction,
  approver: PendingApprover,
  { requirement, ...history }: Pick<VerifiedHistory, "requirement" | "approvals"> & Edited,
  moment: VoteMoment,
  block: Refusal | null,
): VotingTerms["blocked"] {
  const none = { code: "APPROVER_NOT_ELIGIBLE", groups: [] };
  if (requirement === null) return { ...none, detail: "the action needs no approval" };
  if (!approver.hasScope("approvals:decide")) return { ...none, detail: "it needs the scope approvals:decide" };
  if (!canSee(approver.visibility, row)) return { ...none, detail: "the action is hidden by the limits of groups" };
  if (!coversChain(approver.visibility, row)) return { ...none, detail: describeUncovered(approver.visibility, row) };
  const self = findSelfApproval(host, row, approver);
  return findVoting(host, row, approver, { ...history, requirement, self }, moment, block).blocked;
}

/**
 * Returns the user as an approver, with the delegations that apply to their sessions; null if there is no such user or
 * the user is deactivated.
 * @param moment the states in a ledger transaction, or at the newest commit
 */
export async function findUserAsApprover(
  host: CoreHost,
  moment: VoteMoment,
  id: string,
): Promise<PendingApprover | null> {
  const user = moment.state(userState).get(id);
  const rights = user === undefined ? null : await host.keys.rightsOf(rightsReader(host, moment), id);
  if (user === undefined || rights === null) return null;
  const delegators = await host.users.delegatorsOf(id);
  return {
    ...rights,
    visibility: extendVisibility(rights.visibility, delegators),
    session: { id: "", user, terminal: false, visibility: rights.visibility, delegators },
  };
}
