/**
 * Votes on actions, cancels them and expires them.
 */
import {
  actionEntryFields,
  approvalValidityMs,
  canSee,
  cancellationEntry,
  type CompiledPolicySet,
  confirmCredential,
  type CoreHost,
  type CountedVote,
  type Decision,
  type GrantTerms,
  type LedgerTransaction,
  NON_VOTE_FIELDS,
  questionsDigest,
  rejectionHoldMs,
  areSamePlans,
  satisfiesPlans,
  toActor,
  withoutDelegations,
} from "../../src/core.ts";
import { type Credential, Refusal, toRfc3339, type VerifiedAccount } from "../../src/plugin.ts";
import type { ActionRow, ApprovalRow, ApprovedCursor } from "../../src/storage/index.ts";
import type { PinChange } from "./compare-pins.ts";
import { countPeople } from "./count-people.ts";
import {
  requireMoreApprovals,
  reevaluateAction,
  recordDenial,
  isDeniedByRedecision,
  noLongerAllowedError,
  combineApproverPlans,
  type Redecision,
} from "./redecision.ts";
import { commitPreview, digestShownRequest } from "./action-record.ts";
import { assertMeetsOversightMode, toCountedVotes } from "./approver-plans.ts";
import { releaseLimitUses } from "./limit-usage.ts";
import { assertNotEarlierPins, factsChangedError, findPinChanges } from "./pins.ts";
import { prefetchRedecision } from "./prefetch-redecision.ts";
import { findMatchingHistory, type VerifiedHistory, verifyAgainstLedger } from "./verify-record.ts";
import { assertNotErased, isOverdue, isStartable, visibleAction } from "./visible-action.ts";
import { coversChain, isSubmitter } from "./self-approval.ts";
import {
  assertPersonHasNotVoted,
  chooseVotingCapacity,
  describeUncovered,
  excludeEditor,
  findVotingCapacities,
  type VotingCapacity,
  type ProspectiveVoter,
} from "./voting-capacity.ts";
import {
  findLinkedAction,
  readLinkGrantor,
  verifyLinkEarly,
  verifyLinkVoter,
  readVoteGrantTerms,
  verifyVoter,
  type Vote,
  type VoteProof,
  type Voter,
} from "./voter.ts";

/**
 * The voter and the proof. Either the token of an approval link, with the digest of the displayed content (`shown`)
 * and, from a facade, the account that it verified. Or a credential with the action's id and a vote proof.
 */
type Ballot =
  | { link: string; shown: string; account: VerifiedAccount | null }
  | { credential: Credential; id: string; proof: VoteProof };

/**
 * Records a vote. Returns the action and all of its votes, including this one. Throws APPROVAL_EXPIRED if the action
 * has expired, and NO_LONGER_ALLOWED if the policies now deny it; both outcomes are recorded first.
 */
export async function castVoteOnAction(
  host: CoreHost,
  by: Ballot,
  vote: Vote,
): Promise<{ row: ActionRow; votes: readonly ApprovalRow[]; grantId: string | null }> {
  let votesSoFar: readonly ApprovalRow[] = [];
  let changes: PinChange[] | null = null;
  const { voteAddition, soleApproval } = host;
  const carriesGrant = vote.grant !== undefined;
  // Without a plugin that declares the addition, the schema of the body has no such member.
  if (carriesGrant)
    voteAddition?.assertMayCarry("link" in by ? (by.account === null ? null : {}) : by.credential, vote.approve);
  if (vote.break_glass === true) soleApproval?.assertForm(vote);
  const ids = { grant: host.newId(), soleApproval: host.newId() };
  // An unauthenticated caller needs a valid token before it may acquire the ledger's lock, which all decisions wait
  // for.
  const linked = "link" in by ? await findLinkedAction(host.storage, by.link) : null;
  if ("link" in by && linked !== null) await verifyLinkEarly(host, linked, by.link);
  if (vote.approve)
    await prefetchRedecision(
      host,
      ["link" in by ? (linked?.id ?? "") : by.id],
      (row) => "link" in by || canSee(by.credential.visibility, row),
    );
  const row = await transactAndReport(host, async (tx) => {
    changes = null;
    const caller = "link" in by ? null : await confirmCredential(tx, by.credential, "approvals:decide");
    const row = await ("link" in by ? findLinkedAction(tx, by.link) : visibleAction(tx, by.id, caller as Credential));
    const ballot = "link" in by ? by : { caller: caller as Credential, proof: by.proof };
    const prepared = await prepareVote(host, tx, row, ballot, vote);
    if ("ends" in prepared) {
      changes = findVotedPinChanges(prepared);
      return recordUnvotableAction(tx, prepared);
    }
    if (carriesGrant && voteAddition !== null) {
      const grantor = "link" in by ? await readLinkGrantor(host, tx, row, by) : (caller as Credential);
      const [terms, reason] = [voteAddition.readTerms(vote.grant), vote.reason ?? null];
      const { grants: largest, history, voter } = prepared;
      const { facts } = history.first;
      const passkey = voter.gesture?.credential_id ?? null;
      voteAddition.record(host, tx, grantor, row, { id: ids.grant, terms, largest, facts, reason, passkey });
    }
    const voted = await recordVote(host, tx, prepared, ids);
    votesSoFar = [...prepared.votes, voted.vote];
    return voted.row;
  });
  // Throw only after the commit, because a refusal within the transaction would roll the record of the values back.
  if (changes !== null) throw factsChangedError(changes);
  return { row, votes: votesSoFar, grantId: carriesGrant ? ids.grant : null };
}

/**
 * Returns the commitment to the preview that the link's page displayed; null if there is none. Throws FACTS_CHANGED if
 * the pinned facts have changed since the page was read. Throws TOKEN_INVALID if the request, its preview or the
 * questions have changed.
 */
function assertShownByLink(
  row: ActionRow,
  history: VerifiedHistory,
  set: CompiledPolicySet,
  shown: string,
): string | null {
  const preview = commitPreview(row, set);
  const questions = questionsDigest(history.questions);
  const isShown = (pins: string | null): boolean => shown === digestShownRequest(row, { questions, preview, pins });
  if (isShown(history.pins)) return preview;
  assertNotEarlierPins(history, row, isShown);
  throw new Refusal(
    "TOKEN_INVALID",
    "`shown` is not the digest of the current request, preview, questions and pinned facts; read the link again and vote on what it shows",
  );
}

/** A vote that passed all checks. */
export interface PreparedVote extends VoteOutcome {
  /** Earlier votes that count together with this vote. */
  votes: readonly ApprovalRow[];
  /** The action before the vote. */
  history: VerifiedHistory;
  voter: Voter;
  vote: Vote;
}

/**
 * An action that the vote does not count for, because it has expired, the policies now deny it, or pinned facts have
 * changed.
 */
export interface UnvotableAction {
  row: ActionRow;
  ends: "expired" | { redecision: Redecision; by: Voter["actor"]; changes?: ChangedPins };
}

/** The pinned facts that changed since the voter saw them. The action stays pending, with the current values. */
interface ChangedPins {
  pins: PinChange[];
  history: VerifiedHistory;
}

/** The holder of a link token, or a confirmed credential with the proof of its vote. */
type ConfirmedBallot = { link: string; shown: string } | { caller: Credential; proof: VoteProof };

/** Checks everything about a vote, without recording it. Throws if the vote would be rejected. */
export async function prepareVote(
  host: CoreHost,
  tx: LedgerTransaction,
  row: ActionRow,
  by: ConfirmedBallot,
  vote: Vote,
): Promise<PreparedVote | UnvotableAction> {
  assertNotErased(row);
  const stored = await tx.approvals(row.id);
  const verified = await verifyAgainstLedger(host, tx, row, stored);
  const voter =
    "link" in by
      ? await verifyLinkVoter(host, tx, row, by.link)
      : verifyVoter(
          host,
          row,
          by.caller,
          { vote, proof: by.proof },
          { history: verified, set: tx.activePolicies.compiled },
        );
  if (vote.approve && !coversChain(voter.visibility, row))
    throw new Refusal("APPROVER_NOT_ELIGIBLE", describeUncovered(voter.visibility, row));
  if (vote.break_glass === true) assertMayApproveAlone(host, "link" in by ? null : by.caller, row, voter);
  const block = vote.approve && vote.list === undefined ? host.guard.findApprovalBlock(row) : null;
  if (block !== null) throw block;
  assertMeetsOversightMode(voter, verified.requirement?.approvers ?? []);
  const isFirstOnList = vote.list !== undefined && verified.approvals.some(({ plan }) => plan !== vote.list);
  const votes = isFirstOnList ? [] : stored;
  const history = isFirstOnList ? { ...verified, approvals: [] } : verified;
  const { principal } = voter.actor;
  if (votes.some((vote) => vote.principal === principal)) {
    throw new Refusal("ALREADY_VOTED", "you have already voted on this action; a token is valid for one vote");
  }
  if (isOverdue(row, tx.now)) return { row, ends: "expired" };
  assertPending(row);
  if ("link" in by) voter.preview = assertShownByLink(row, verified, tx.activePolicies.compiled, by.shown);
  const outcome = vote.approve
    ? await countApproval(host, tx, row, history, { ...voter, break_glass: vote.break_glass ?? false })
    : countRejection(host, tx, row, history, voter);
  return "ends" in outcome ? outcome : { ...outcome, votes, history: verified, voter, vote };
}

/** Records why the vote was not possible. */
export function recordUnvotableAction(tx: LedgerTransaction, { row, ends }: UnvotableAction): Promise<ActionRow> {
  if (ends === "expired") return expirePending(tx, row);
  const { redecision, by, changes } = ends;
  const cause = { occasion: "vote", by } as const;
  if (changes !== undefined) return requireMoreApprovals(tx, row, redecision, cause, changes.history);
  return recordDenial(tx, row, redecision, cause);
}

/** Returns the changes of pinned facts that prevented the vote; null if something else did. */
export function findVotedPinChanges({ ends }: UnvotableAction): PinChange[] | null {
  return ends === "expired" ? null : (ends.changes?.pins ?? null);
}

/** Throws unless the voter may approve without the other approvers. */
function assertMayApproveAlone(
  { soleApproval }: CoreHost,
  caller: Credential | null,
  row: ActionRow,
  { self }: Voter,
): void {
  if (soleApproval === null) throw new Error("no plugin lets a person approve without the other approvers");
  const refusal = soleApproval.findRefusal(caller, row, self);
  if (refusal !== null) throw refusal;
}

const toProspectiveVoter = ({ actor: { principal, key_id }, groups, session, self }: Voter): ProspectiveVoter => ({
  principal,
  key_id,
  groups,
  session,
  self,
});

/** The effect of a vote that is about to be recorded. */
interface VoteOutcome extends Pick<VotingCapacity, "groups" | "independent" | "delegation"> {
  /** The action before the vote. */
  row: ActionRow;
  /** Set if the current policies require more than before: their redecision, and the earlier requirement. */
  stricter: { redecision: Redecision; history: VerifiedHistory } | null;
  /** Commitment to the pinned facts that the voter saw; null without pins. */
  pins: string | null;
  /** Digest of the questions so far. */
  questions: string | null;
  status: "pending_approval" | "approved" | "denied";
  /** Number of different people who have approved, including the voter. */
  approvals: number;
  /** Time after the approval within which the action can start. Milliseconds. */
  validForMs: number;
  /** How long a rejection denies duplicate requests. Milliseconds; 0 if it does not deny them. */
  holdMs: number;
  /**
   * The largest grant that this approver can create together with the vote; null if the approver cannot create a grant.
   */
  grants: GrantTerms | null;
}

function countRejection(
  host: CoreHost,
  tx: LedgerTransaction,
  row: ActionRow,
  history: VerifiedHistory,
  voter: Voter,
): VoteOutcome {
  const { terms, approvals, requirement } = history;
  const { capacities, excluded } = findVotingCapacities(
    host,
    // A person who may reject the agent's own actions may also reject its actions under an authority.
    { ...row, authority: null },
    toProspectiveVoter(voter),
    requirement?.approvers ?? [],
    tx,
  );
  const [capacity] = capacities;
  if (capacity === undefined) throw new Refusal("APPROVER_NOT_ELIGIBLE", excluded.join("; "));
  return {
    row,
    stricter: null,
    pins: history.pins,
    questions: questionsDigest(history.questions),
    status: "denied",
    ...capacity,
    approvals: countPeople(toCountedVotes(host, approvals).map(({ principals }) => principals)),
    validForMs: 0,
    holdMs: rejectionHoldMs(terms),
    grants: null,
  };
}

/**
 * Evaluates the action again and counts an approval. Throws ALREADY_VOTED or APPROVER_NOT_ELIGIBLE if the vote would
 * not count.
 */
async function countApproval(
  host: CoreHost,
  tx: LedgerTransaction,
  row: ActionRow,
  history: VerifiedHistory,
  voter: Voter & { break_glass: boolean },
): Promise<VoteOutcome | UnvotableAction> {
  const { actor, self, gesture, break_glass } = voter;
  const earlier = toCountedVotes(host, history.approvals);
  const terms = { self: self !== null, signed: gesture !== null, break_glass, at: tx.now };
  const recorded = history.requirement?.approvers ?? [];
  const prospective = toProspectiveVoter(voter);
  // No one can approve twice, even if one of the votes is on behalf of another user.
  const before = excludeEditor(host, history, prospective, findVotingCapacities(host, row, prospective, recorded, tx));
  assertPersonHasNotVoted(earlier, before);
  const redecision = await reevaluateAction(host, tx, row, history.basis);
  if (redecision.decision.effect === "deny") return { row, ends: { redecision, by: actor } };
  const pins = findPinChanges(redecision, history, row);
  if (pins.length > 0) return { row, ends: { redecision, by: actor, changes: { pins, history } } };
  const approvers = combineApproverPlans(history.requirement, redecision);
  const isStricter = !areSamePlans(approvers, recorded);
  const requirement = { approvers, since: isStricter ? tx.now : (history.requirement?.since ?? tx.now) };
  // The policies may have changed since the decision, so the current policies must also allow a self-confirmation.
  assertMeetsOversightMode({ self, gesture }, approvers);
  const now = excludeEditor(host, history, prospective, findVotingCapacities(host, row, prospective, approvers, tx));
  // An emergency approval never uses a delegation.
  const capacities = break_glass ? now.capacities.filter(({ delegation }) => delegation === null) : now.capacities;
  const chosen = chooseVotingCapacity(requirement, earlier, { ...now, capacities }, terms);
  if ("refusal" in chosen) throw chosen.refusal;
  const { vote } = chosen;
  const isApproved = satisfiesPlans(approvers, [...earlier, vote], requirement.since, tx.now);
  return {
    row,
    stricter: isStricter ? { redecision, history } : null,
    pins: history.pins,
    questions: questionsDigest(history.questions),
    status: isApproved ? "approved" : "pending_approval",
    ...chosen.capacity,
    approvals: countPeople([...earlier, vote].map(({ principals }) => principals)),
    validForMs: approvalPeriodMs([history.terms, redecision.decision.approval]),
    holdMs: 0,
    // One vote can be enough for the current policies while the recorded decision still requires more approvers.
    grants: isApproved ? largestGrant(redecision.decision.approval, chosen, tx.now) : null,
  };
}

/** Returns the shortest of the approval periods, or the default one without terms. Milliseconds. */
export function approvalPeriodMs(terms: readonly Decision["approval"][]): number {
  const periods = terms.filter((each) => each !== null).map(approvalValidityMs);
  return periods.length === 0 ? approvalValidityMs(null) : Math.min(...periods);
}

/**
 * Returns the largest grant that the approver can create. Null if another approver is required in addition, or if the
 * vote uses a delegation or break-glass.
 */
function largestGrant(
  approval: Decision["approval"],
  { capacity, vote }: { capacity: VotingCapacity; vote: CountedVote },
  now: number,
): GrantTerms | null {
  const isOwn = capacity.delegation === null && !vote.break_glass;
  const isEnough = isOwn && approval !== null && satisfiesPlans(approval.approvers, [vote], now, now);
  return isEnough ? (approval.grants ?? null) : null;
}

/**
 * Records the vote. Returns its row, and the action after it.
 * @param ids ids for the grant, and for the approval without other approvers, that the vote may create
 */
export async function recordVote(
  host: CoreHost,
  tx: LedgerTransaction,
  prepared: PreparedVote,
  ids: { grant: string; soleApproval: string },
): Promise<{ vote: ApprovalRow; row: ActionRow }> {
  const { pins, questions, status, groups, independent, delegation, approvals, validForMs, holdMs } = prepared;
  const { voter, vote: answer, stricter } = prepared;
  const { approve, reason: given, break_glass = false, grant, list = null } = answer;
  const cause = { occasion: "vote", by: voter.actor } as const;
  const row =
    stricter === null
      ? prepared.row
      : await requireMoreApprovals(tx, prepared.row, stricter.redecision, cause, stricter.history);
  const { actor, self, gesture, preview } = voter;
  const terms = readVoteGrantTerms(host, grant);
  const approvedUntil = status === "approved" ? tx.now + validForMs : null;
  const rejectionUntil = holdMs > 0 ? tx.now + holdMs : null;
  const { vote, row: voted } = tx.recordChange(row, prepared.history, {
    type: "approval",
    v: 1,
    ...actionEntryFields(row, tx.now),
    verdict: approve ? "approve" : "deny",
    by: actor,
    comment: given ?? null,
    self_approval: self !== null,
    delegation,
    break_glass,
    grant: terms === null ? null : { id: ids.grant, ...terms },
    groups: [...groups],
    independent,
    gesture,
    preview,
    questions,
    plan: list,
    ...(pins === null ? {} : { pins }),
    approvals,
    quorum: row.quorum ?? 1,
    status,
    approved_until: approvedUntil === null ? null : toRfc3339(approvedUntil),
    rejection_until: rejectionUntil === null ? null : toRfc3339(rejectionUntil),
  });
  if (vote === null) throw new Error(`the entry of the vote on ${row.id} is no vote`);
  if (break_glass) host.soleApproval?.record(tx, row, { id: ids.soleApproval, by: actor, reason: given ?? "" });
  if (status === "denied") for (const reaction of host.reactions) reaction.actionRejected?.(tx, row, actor);
  if (status === "denied") await releaseLimitUses(tx, row);
  return { vote, row: voted };
}

export function cancelAction(
  host: CoreHost,
  credential: Credential,
  id: string,
  reason: string | null,
): Promise<ActionRow> {
  return transactAndReport(host, async (tx) => {
    const caller = withoutDelegations(await tx.confirm(credential));
    return cancelVisibleAction(tx, caller, await visibleAction(tx, id, caller), reason);
  });
}

/**
 * Cancels an action in the caller's transaction, or marks it as expired if it is overdue.
 * @param caller the caller's credential, checked again under the ledger's lock
 */
export async function cancelVisibleAction(
  tx: LedgerTransaction,
  caller: Credential,
  row: ActionRow,
  reason: string | null,
): Promise<ActionRow> {
  if (!isSubmitter(row, caller) && !caller.hasScope("admin")) {
    throw new Refusal(
      "NOT_THE_SUBMITTER",
      "only the submitter (the key that submitted the action, or a key of the same agent or owner) or an admin can cancel it",
    );
  }
  if (isOverdue(row, tx.now)) return expirePending(tx, row);
  // A startable action may already have run, and its cancellation frees its limits, so only an admin may cancel it.
  if (!(isStartable(row, tx.now) && caller.hasScope("admin"))) assertPending(row);
  return recordCancellation(tx, caller, row, reason);
}

/** Records the cancellation of a pending action, or of one that may start and has not run. */
async function recordCancellation(
  tx: LedgerTransaction,
  caller: Credential,
  row: ActionRow,
  reason: string | null,
): Promise<ActionRow> {
  const { id } = row;
  const startable = isStartable(row, tx.now);
  const approvals = (await tx.approvals(id)).filter((vote) => vote.approve).length;
  const by = toActor(caller.key, caller.principal);
  const cancelled = tx.recordChange(row, null, cancellationEntry(row, tx.now, { by, comment: reason, approvals })).row;
  // It has not run, so it no longer counts against limits.
  if (startable) await tx.releaseLimitUses(id);
  else await releaseLimitUses(tx, row);
  return cancelled;
}

/**
 * Withdraws the caller's approval, which cancels the action. Throws APPROVAL_NOT_WITHDRAWN if the action was started, or
 * if a permit may exist: a tool that verifies permits itself could still run the action.
 */
export function withdrawApproval(
  host: CoreHost,
  credential: Credential,
  id: string,
  reason: string | null,
): Promise<ActionRow> {
  return transactAndReport(host, async (tx) => {
    const caller = await confirmCredential(tx, credential, "approvals:decide");
    const row = await visibleAction(tx, id, caller);
    assertNotErased(row);
    const votes = await tx.approvals(id);
    const { mayHavePermit } = await verifyAgainstLedger(host, tx, row, votes);
    if (!votes.some(({ principal, approve }) => approve && principal === caller.principal))
      throw notWithdrawnError("you have not approved the action");
    if (isOverdue(row, tx.now)) return expirePending(tx, row);
    if (!isStartable(row, tx.now) && row.status !== "pending_approval")
      throw notWithdrawnError(`the action is ${row.status}, so it can no longer be withdrawn`);
    if (mayHavePermit)
      throw notWithdrawnError(
        "a permit was or may have been issued for the action, so a tool may already run it; to prevent its start, stop or suspend the agent, or have an admin cancel the action",
      );
    const cancelled = await recordCancellation(tx, caller, row, reason);
    const by = toActor(caller.key, caller.principal);
    for (const reaction of host.reactions) reaction.approvalWithdrawn?.(tx, cancelled, by);
    return cancelled;
  });
}

const notWithdrawnError = (detail: string): Refusal => new Refusal("APPROVAL_NOT_WITHDRAWN", detail);

/** Marks overdue pending actions as expired, oldest first. Returns the number of marked actions. */
export function expireOverdue(host: CoreHost, limit: number): Promise<number> {
  return host.ledger.transact(async (tx) => {
    const rows = await tx.overdueActions(tx.now, limit);
    for (const row of rows) await expirePending(tx, row);
    return rows.length;
  });
}

/**
 * Marks approved actions as expired that were not started in time, in order of their deadline, from the position
 * `from`. Returns the position to continue at, or null if no action was overdue.
 */
export function expireUnstarted(host: CoreHost, from: ApprovedCursor, limit: number): Promise<ApprovedCursor | null> {
  return host.ledger.transact(async (tx) => {
    const rows = await tx.approvedActions(from, limit);
    const overdue = rows.filter(({ approved_until }) => (approved_until ?? tx.now) <= tx.now);
    for (const row of overdue)
      // It keeps counting against limits, because a tool that verifies permits itself may have run it.
      if (row.erased_at === null && (await findMatchingHistory(host, tx, row)) !== null) await recordExpiry(tx, row);
    const last = overdue.at(-1);
    return last === undefined ? null : { approved_until: last.approved_until ?? 0, decision_seq: last.decision_seq };
  });
}

/**
 * Commits the transaction, then throws if it recorded an expiry or a denial. Throwing within the transaction would roll
 * that entry back, and the action could reopen if the clock is set back.
 */
async function transactAndReport(
  host: CoreHost,
  job: (tx: LedgerTransaction) => Promise<ActionRow>,
): Promise<ActionRow> {
  const row = await host.ledger.transact(job);
  if (row.status === "expired") throw approvalExpiredError(row);
  if (isDeniedByRedecision(row)) throw noLongerAllowedError(row);
  return row;
}

async function expirePending(tx: LedgerTransaction, row: ActionRow): Promise<ActionRow> {
  const expired = await recordExpiry(tx, row);
  await releaseLimitUses(tx, row);
  return expired;
}

/** Reads a pending action and verifies it against the ledger. Throws ACTION_NOT_PENDING or APPROVAL_EXPIRED. */
export async function pendingAction(
  host: CoreHost,
  tx: LedgerTransaction,
  id: string,
  caller: Credential,
): Promise<ActionRow> {
  const row = await visibleAction(tx, id, caller);
  assertNotErased(row);
  await verifyAgainstLedger(host, tx, row, await tx.approvals(id));
  assertPending(row);
  if (isOverdue(row, tx.now)) throw approvalExpiredError(row);
  return row;
}

async function recordExpiry(tx: LedgerTransaction, row: ActionRow): Promise<ActionRow> {
  const approvals = (await tx.approvals(row.id)).filter((vote) => vote.approve).length;
  return tx.recordChange(row, null, {
    type: "approval",
    v: 1,
    ...actionEntryFields(row, tx.now),
    verdict: "expired",
    by: null,
    comment: null,
    ...NON_VOTE_FIELDS,
    approvals,
    quorum: row.quorum ?? 1,
    status: "expired",
    approved_until: row.approved_until === null ? null : toRfc3339(row.approved_until),
    rejection_until: null,
  }).row;
}

export function approvalExpiredError(row: ActionRow): Refusal {
  return new Refusal(
    "APPROVAL_EXPIRED",
    `the time to vote ended at ${toRfc3339(row.expires_at ?? 0)}; the agent has to submit the action again`,
  );
}

export function assertPending(row: ActionRow): void {
  if (row.status === "expired" && row.approved_until === null) throw approvalExpiredError(row);
  if (row.status !== "pending_approval") {
    throw new Refusal(
      "ACTION_NOT_PENDING",
      `the action is ${row.status}; only a pending action can be voted on or cancelled; an admin can also cancel an action that may start`,
    );
  }
}
