/**
 * Rebuilds an action from its ledger entries. The action's database row is a cache of this history. The audit compares
 * every column with it, and the service compares the row with it before the action can proceed. The ledger does not
 * contain the request and the result, only salted commitments to them.
 */
import {
  changedColumns,
  decidedColumns,
  type RecordedAction,
  type RecordedVote,
  votedColumns,
  voidsVotes,
} from "./action-columns.ts";
import type { ReportedUsage } from "./limit-uses.ts";
import { canTransition, type ActionStatus } from "./actions.ts";
import { requiresSignature, satisfiesPlans, type ApproverPlan, type CountedVote } from "./approvers.ts";
import { findDeniedBy } from "./denied-by.ts";
import {
  type Actor,
  type ApprovalEntry,
  type ChangeEntry,
  decodeEntry,
  type DecisionEntry,
  type ErasingEntry,
  type ExecutionEntry,
  type QuestionEntry,
  type RedecisionEntry,
  type ReviewEntry,
} from "./entries.ts";
import { toHex } from "./hash.ts";
import type { ErasablePart } from "./erasure.ts";
import { questionsDigest, type RecordedQuestion } from "./questions.ts";
import { findOutstandingReviewers, type RequiredReviewer, reviewsApprove } from "./reviews.ts";
import { encodeSaltedFacts, findFactsByCommitment } from "./salted-facts.ts";
import { parseEntryTime } from "./time.ts";

/** An entry about an action, with its sequence number. */
export type ActionEntry = (DecisionEntry | ChangeEntry | ErasingEntry) & { seq: number };

/** Returns true if the decision made the action pending. */
export function isRequestForApproval(entry: ActionEntry): entry is (DecisionEntry | RedecisionEntry) & { seq: number } {
  return (entry.type === "decision" || entry.type === "redecision") && entry.status === "pending_approval";
}

/**
 * Returns the terms of the newest request for approval that has any; null if approval was never required. A request whose
 * only cause is a change of pinned facts has none.
 */
export function findApprovalTerms(entries: readonly ActionEntry[]): DecisionEntry["decision"]["approval"] {
  const requests = entries.filter(isRequestForApproval);
  return requests.findLast(({ decision }) => decision.approval !== null)?.decision.approval ?? null;
}

/** Who has to approve an action. */
export interface ApprovalRequirement {
  /** The plans of all rules. The votes must satisfy every plan. */
  approvers: readonly ApproverPlan[];
  /** Time when the requirement was recorded, at which the first stage opened. Milliseconds. */
  since: number;
}

/** An approving vote, without the principals that share it. */
export interface RecordedApproval extends Omit<CountedVote, "principals"> {
  principal: string;
  key_id: string;
  /** Principal of the delegator on whose behalf the approver voted; null if the vote is in the approver's own name. */
  on_behalf_of: string | null;
  /** Digest of the list of actions that the vote approves, for an action of a plan; else null. */
  plan: string | null;
}

/** The newest entry that made an action pending, with the machine reviewers that it named. */
export interface RequestForReview {
  seq: number;
  reviewers: readonly RequiredReviewer[];
  /** The answers to this request, in order. Answers to earlier requests do not count. */
  reviews: readonly (ReviewEntry & { seq: number })[];
}

/** The entry with which an approver, or the obligations of the decision, changed the request. */
export interface RecordedEdit {
  entry: (DecisionEntry | RedecisionEntry) & { seq: number };
  /** Milliseconds. */
  at: number;
  /** The approver; null if obligations of rules changed the request. */
  by: Actor | null;
  comment: string | null;
  commitment: string;
}

export interface ActionHistory {
  action: RecordedAction;
  /** The decision on the submission. */
  first: DecisionEntry & { seq: number };
  entries: readonly ActionEntry[];
  votes: RecordedVote[];
  /** Null if approval was not required. */
  requirement: ApprovalRequirement | null;
  /** The approving votes, in order. */
  approvals: RecordedApproval[];
  /** Questions of approvers to the agent, in order. */
  questions: RecordedQuestion[];
  /** Commitment to the pinned values that approvers see; null without pins. */
  pins: string | null;
  /** Null if the action was never pending. */
  asked: RequestForReview | null;
  /** Commitment to the request that may run. */
  commitment: string;
  /** How an approver or the policies changed the request; null if it was not changed. */
  edit: RecordedEdit | null;
  /** Commitments to the past actions that this action's decisions read, in the order of the decisions. */
  past: string[];
  /** Commitment to the reported result; null before it is reported. */
  result: string | null;
  /** Amounts that the result reported for limits; null before, or without them. */
  usage: ReportedUsage | null;
  /** Parts that were erased although the request is still stored. */
  erasedParts: ErasablePart[];
  /** The commitments of the erasure (`rejected`), until the rejection is lifted. */
  rejected: readonly string[];
  /** Whether the action was ever allowed or approved. */
  mayHaveRun: boolean;
  /**
   * Time of the last start, or of the last redecision that did not deny the action. Milliseconds; null without either.
   */
  confirmedAt: number | null;
  /** Whether the action still counts against limits. */
  countsAgainstLimits: boolean;
  /** Contradictions between the entries, one sentence each. */
  faults: string[];
}

/**
 * Decodes an action's stored entries and rebuilds the action. Skips the entries of plugins, which never change an action.
 * Returns null if the first entry is not a decision. Throws RangeError or TypeError for malformed entries.
 */
export function readActionHistory(
  rows: readonly { type: string; bytes: Uint8Array; leaf_hash: Uint8Array }[],
): ActionHistory | null {
  const stored = rows.filter(({ type }) => !type.includes(":"));
  const [first] = stored;
  const entries = stored.map(({ bytes }) => decodeEntry<ActionEntry>(bytes));
  return first === undefined ? null : buildActionHistory(entries, toHex(first.leaf_hash));
}

/**
 * Rebuilds an action from its entries. Returns null if the first entry is not a decision. Throws RangeError or
 * TypeError for malformed entries.
 * @param entries all entries of one action, in ascending order
 * @param decisionHash the leaf hash of the first entry, in hex
 */
export function buildActionHistory(entries: readonly ActionEntry[], decisionHash: string): ActionHistory | null {
  const first = entries[0];
  if (first?.type !== "decision") return null;
  const { decision } = first;
  const action = decidedColumns(first, { seq: first.seq, hash: decisionHash });
  const history: ActionHistory = {
    action,
    first,
    entries,
    votes: [],
    requirement:
      decision.approval === null ? null : { approvers: decision.approval.approvers, since: action.created_at },
    approvals: [],
    questions: [],
    pins: first.status === "pending_approval" ? (first.pins ?? null) : null,
    asked: requestForReview(first, false),
    commitment: first.effective ?? first.commitment,
    edit: policyEdit(first, action.created_at),
    past: entries.flatMap((entry) => ("facts" in entry ? (entry.facts.past ?? []) : [])),
    result: null,
    usage: null,
    erasedParts: [],
    rejected: [],
    mayHaveRun: first.status === "allowed",
    confirmedAt: null,
    countsAgainstLimits: true,
    faults: [],
  };
  if (first.denied_by !== findDeniedBy(action))
    history.faults.push(`its decision says denied_by ${first.denied_by}, which its status and reason do not`);
  if (first.effective !== undefined && decision.obligations === undefined)
    history.faults.push("its decision changes the request without obligations");
  for (const entry of entries.slice(1)) applyEntry(history, entry);
  return history;
}

/** Returns the change that the obligations of the decision made; null if they did not change the request. */
function policyEdit(entry: DecisionEntry & { seq: number }, at: number): RecordedEdit | null {
  const { effective: commitment } = entry;
  return commitment === undefined ? null : { entry, at, by: null, comment: null, commitment };
}

function applyEntry(history: ActionHistory, entry: ActionEntry): void {
  const { action, faults } = history;
  const at = parseEntryTime(entry.at);
  if (entry.type === "decision") return void faults.push("it was decided twice");
  if (entry.type === "redecision" && entry.edit !== null) applyEdit(history, entry, at);
  if (entry.commitment !== history.commitment) faults.push(`an entry of type ${entry.type} commits to another request`);
  if (action.erased_at !== null && !(entry.type === "approval" && entry.verdict === "rejection_lifted"))
    faults.push("it went on after it was erased");
  if (entry.type === "erasure") {
    if (action.status === "pending_approval") faults.push("it was erased while it was pending");
    if ((entry.rejected !== undefined) !== (action.rejection_until ?? 0) > at)
      faults.push("its erasure does not agree with its rejection");
    history.rejected = entry.rejected ?? [];
    action.erased_at = at;
    return;
  }
  if (entry.type === "part_erasure") {
    if (action.status === "pending_approval") faults.push(`its ${entry.part} was erased while it was pending`);
    if (history.erasedParts.includes(entry.part)) faults.push(`its ${entry.part} was erased twice`);
    history.erasedParts.push(entry.part);
    return;
  }
  if (entry.type === "question") return applyQuestion(history, entry, at);
  if (entry.status !== action.status && !canTransition(action.status, entry.status))
    faults.push(`it moved from ${action.status} to ${entry.status}`);
  const { status: before, rejection_until } = action;
  if (endsWithoutRunning(entry.status))
    history.countsAgainstLimits = history.mayHaveRun && !isWithdrawal(before, entry.status);
  if (mayStart(entry.status)) history.mayHaveRun = true;
  if (voidsVotes(history, entry)) {
    history.votes = [];
    history.approvals = [];
  }
  Object.assign(action, changedColumns(action, entry));
  if (entry.type === "approval") {
    if (entry.verdict === "rejection_lifted") {
      if (rejection_until === null) faults.push("a rejection that was not in effect was lifted");
      history.rejected = [];
    }
    if (entry.verdict === "approve" || entry.verdict === "deny") applyVote(history, entry, at);
  } else if (entry.type === "review") {
    applyReview(history, entry, before);
  } else if (entry.type === "redecision") {
    if (entry.status !== "denied") history.confirmedAt = at;
    if (entry.status !== "pending_approval") return;
    const { quorum, expires_at, approvers } = entry;
    if (quorum === null || expires_at === null || approvers === null)
      return void faults.push("it is pending without a quorum, deadline or approvers");
    history.requirement = { approvers, since: at };
    history.pins = entry.pins ?? null;
    history.asked = requestForReview(entry, history.edit !== null && history.edit.by !== null);
  } else {
    applyExecution(history, entry, at);
  }
}

function applyVote(history: ActionHistory, entry: ApprovalEntry & { seq: number }, at: number): void {
  const { action, faults } = history;
  const vote = votedColumns(entry);
  if (vote === null) return void faults.push("one of its votes names no voter");
  if (entry.questions !== questionsDigest(history.questions))
    faults.push(`the vote of entry ${entry.seq} names questions that differ from the recorded questions`);
  if ((entry.pins ?? null) !== history.pins)
    faults.push(`the vote of entry ${entry.seq} is about pinned facts that differ from the recorded ones`);
  if (entry.gesture === null && requiresSignature(history.requirement?.approvers ?? []))
    faults.push(`the vote of entry ${entry.seq} has no signature, and its rule requires one`);
  if (entry.plan !== null && action.plan_id === null)
    faults.push(`the vote of entry ${entry.seq} is about a plan, and the action belongs to none`);
  if (entry.plan === null && action.plan_id !== null && entry.verdict === "approve")
    faults.push(`the vote of entry ${entry.seq} approves an action of a plan without the plan`);
  history.votes.push(vote);
  const breakGlassFault = entry.break_glass ? findBreakGlassFault(entry) : null;
  if (breakGlassFault !== null) faults.push(`the break-glass approval of entry ${entry.seq} ${breakGlassFault}`);
  if (entry.verdict === "approve") applyApproval(history, entry, at);
}

/** Applies an approver's edit. Later entries commit to the changed request. */
function applyEdit(history: ActionHistory, entry: RedecisionEntry & { seq: number }, at: number): void {
  const { edit, occasion, by, commitment, status } = entry;
  const isOpen = history.action.status === "pending_approval" && status === "pending_approval";
  if (edit === null || occasion !== "edit" || !isOpen || history.mayHaveRun || history.edit !== null)
    history.faults.push(`entry ${entry.seq} changes the request when it could not be changed`);
  if (edit?.previous !== history.commitment) history.faults.push(`entry ${entry.seq} changes another request`);
  if (by === null)
    return void history.faults.push(`entry ${entry.seq} does not name the person who changed the request`);
  history.edit = { entry, at, by, comment: edit?.comment ?? null, commitment };
  history.commitment = commitment;
}

function applyQuestion({ action, faults, questions }: ActionHistory, entry: QuestionEntry, at: number): void {
  const { phase, number, by, text } = entry;
  if (action.status !== "pending_approval")
    faults.push(`a question was asked or answered while it was ${action.status}`);
  if (phase === "ask") {
    if (number !== questions.length + 1) faults.push(`question ${number} follows question ${questions.length}`);
    questions.push({ asked_by: by.principal, asked_at: at, question: text, answered_at: null, answer: null });
    return;
  }
  const question = questions[number - 1];
  if (question === undefined || question.answer !== null)
    return void faults.push(`there was no open question ${number} to answer`);
  Object.assign(question, { answered_at: at, answer: text });
}

/**
 * Returns the request for review that an entry makes.
 * @param isEdited whether an approver changed the request, in this entry or an earlier one
 */
function requestForReview(
  { seq, status, decision }: (DecisionEntry | RedecisionEntry) & { seq: number },
  isEdited: boolean,
): RequestForReview | null {
  if (status !== "pending_approval") return null;
  const reviewers = decision.approval?.reviewers ?? [];
  // If a person changed the request, another person must approve it.
  const reviewersAfterEdit = isEdited ? reviewers.map((reviewer) => ({ ...reviewer, may_approve: false })) : reviewers;
  return { seq, reviewers: reviewersAfterEdit, reviews: [] };
}

/**
 * Applies a machine reviewer's answer. Reports a fault unless the answer is to the newest request for review and has
 * exactly the effect that this request allows.
 */
function applyReview(history: ActionHistory, entry: ReviewEntry & { seq: number }, before: ActionStatus): void {
  const { faults, asked } = history;
  const { seq, reviewer, status } = entry;
  if (before !== "pending_approval") faults.push(`the review of entry ${seq} is about an action that was ${before}`);
  if (asked === null || entry.asked !== asked.seq)
    return void faults.push(`the review of entry ${seq} answers another request`);
  if (!findOutstandingReviewers(asked.reviewers, asked.reviews).some(({ name }) => name === reviewer))
    faults.push(`the review of entry ${seq} is by a reviewer that had already answered or was not called`);
  history.asked = { ...asked, reviews: [...asked.reviews, entry] };
  const { reviewers, reviews } = history.asked;
  if (entry.outstanding !== findOutstandingReviewers(reviewers, reviews).length)
    faults.push(`the review of entry ${seq} counts other outstanding reviews than its action has`);
  if ((entry.answer === null) === (entry.fault === null))
    faults.push(`the review of entry ${seq} must have either an answer or a fault`);
  if ((entry.answer === "deny") !== (status === "denied"))
    faults.push(`the review of entry ${seq} answers ${entry.answer}, and the action became ${status}`);
  if (status === "approved" && !reviewsApprove(reviewers, reviews))
    faults.push(`the review of entry ${seq} approves the action although its decision does not permit that`);
}

function applyExecution(history: ActionHistory, { phase, by, pins, result, usage }: ExecutionEntry, at: number): void {
  const { faults } = history;
  if (phase === "start" && (pins ?? null) !== history.pins)
    faults.push("it started on pinned facts that differ from those that were approved");
  if (phase === "no_result") {
    if (by !== null) faults.push("the entry about its missing result names an actor");
    return;
  }
  if (by === null) return void faults.push(`no one is named for its ${phase}`);
  if (phase === "start") {
    history.confirmedAt = at;
  } else {
    history.result = result;
    history.usage = usage === undefined ? null : { amounts: usage, at };
  }
}

/**
 * Checks the outcome of an approving vote. Counts each vote for its own principal only, because the entries do not
 * record which principals share a vote. Reports a fault if these votes do not satisfy the approval.
 */
function applyApproval(history: ActionHistory, entry: ApprovalEntry & { seq: number }, at: number): void {
  const { by, groups, independent, self_approval: self, break_glass } = entry;
  if (by === null) return;
  const on_behalf_of = entry.delegation?.from ?? null;
  if (self && entry.gesture === null) history.faults.push(`the self-confirmation of entry ${entry.seq} has no gesture`);
  const signed = entry.gesture !== null;
  const { principal, key_id } = by;
  const voteProperties = { groups, independent, self, signed, break_glass };
  if ([principal, on_behalf_of].includes(history.edit?.by?.principal ?? ""))
    history.faults.push(`entry ${entry.seq} is the approval of who changed the request`);
  history.approvals.push({ principal, key_id, on_behalf_of, plan: entry.plan, ...voteProperties, at });
  if (entry.status !== "approved" || history.requirement === null) return;
  const { approvers, since } = history.requirement;
  const votes = history.approvals.map(toCountedVote);
  if (!satisfiesPlans(approvers, votes, since, at))
    history.faults.push(`entry ${entry.seq} approves it without the votes that its decision requires`);
}

/** Returns the vote with the principals in its entry. */
export function toCountedVote(vote: RecordedApproval): CountedVote {
  const { principal, on_behalf_of } = vote;
  return { ...vote, principals: on_behalf_of === null ? [principal] : [principal, on_behalf_of] };
}

/** Returns the fault of an emergency approval; null if it has none. */
function findBreakGlassFault({ verdict, status, comment, self_approval, delegation }: ApprovalEntry): string | null {
  if (verdict !== "approve" || status !== "approved") return "does not approve the action";
  if (comment === null || comment.trim() === "") return "has no reason";
  if (self_approval) return "is by the person behind the agent";
  return delegation === null ? null : "uses a delegation";
}

/** Returns true for a status of an action that ended without running, and so does not count against limits. */
function endsWithoutRunning(status: ActionStatus): boolean {
  return status === "denied" || status === "expired" || status === "cancelled";
}

/**
 * Returns true if an operator cancelled an action that could have started. The operator thereby states that it has not
 * run.
 */
function isWithdrawal(from: ActionStatus, to: ActionStatus): boolean {
  return mayStart(from) && to === "cancelled";
}

function mayStart(status: ActionStatus): boolean {
  return status === "allowed" || status === "approved";
}

/**
 * Returns the time under which the histories of policies list the action. Milliseconds. The time is `confirmedAt`, or
 * the decision or the edit if that is later.
 */
export function findHistoryTime({ action, edit, confirmedAt }: ActionHistory): number {
  const decidedAt = edit?.at ?? action.created_at;
  return Math.max(decidedAt, confirmedAt ?? decidedAt);
}

/**
 * Returns an action's row as the stored entries record it, and the time under which histories list the action. Returns
 * null if the first entry is not a decision.
 * @param row the stored row, which can be newer than the entries
 * @example
 * const recomputed = recomputeActionRow(row, entriesOfAction);
 * if (recomputed === null) throw new StorageError("corrupt", "the action has no decision");
 */
export function recomputeActionRow<Row extends { past: string | null; result: string | null }>(
  row: Row,
  rows: Parameters<typeof readActionHistory>[0],
): { row: Row; historyTime: number } | null {
  const history = readActionHistory(rows);
  if (history === null) return null;
  const recorded = Object.entries(history.action).filter(([, value]) => value !== undefined);
  const pasts = [...new Set(history.past)].flatMap((past) => findFactsByCommitment(past, row.past) ?? []);
  return {
    row: {
      ...row,
      ...Object.fromEntries(recorded),
      past: encodeSaltedFacts(pasts),
      result: history.result === null ? null : row.result,
    },
    historyTime: findHistoryTime(history),
  };
}
