/** Ledger entries about one action, from its decision to its end. */
import type { ApproverPlan } from "../approvers.ts";
import type { DeniedBy } from "../denied-by.ts";
import type { ErasablePart } from "../erasure.ts";
import type { VoteSignature, VoteGrantTerms } from "../gesture.ts";
import type { Decision, RecordedFacts } from "../policy/policy-types.ts";
import type { ReviewAnswer, ReviewFault } from "../reviews.ts";

/** The credential that caused the entry. It comes from authentication, never from a request body. */
export interface Actor {
  key_id: string;
  principal: string;
  agent_id: string | null;
  owner: string | null;
}

export interface DecisionEntry {
  type: "decision";
  v: 1;
  action_id: string;
  at: string;
  agent_id: string;
  tool: string;
  operation: string;
  /** SHA-256(salt ‖ request_hash), both as raw bytes. */
  commitment: string;
  /**
   * Commitment to the request after the decision's obligations were applied, with the same salt. Later entries commit
   * to it. Absent if they changed nothing.
   */
  effective?: string;
  submitted_by: Actor;
  policy_set: string | null;
  facts: RecordedFacts;
  decision: Decision;
  status: "allowed" | "denied" | "pending_approval";
  /** What denied the action; null unless the action was denied. */
  denied_by: DeniedBy | null;
  expires_at: string | null;
  /** Deadline for starting; null if the action cannot start. */
  approved_until: string | null;
  /** SHA-256(salt ‖ SHA-256(canonical `{meta}`)), with a separate salt; null without `meta`. */
  meta: string | null;
  /** The action's plan, and its position in the plan from 1; null if the action is not part of a plan. */
  plan: { id: string; position: number } | null;
  /** Commitment to the values of the decision's pins, with the salt of the action. Absent without pins. */
  pins?: string;
}

export interface ApprovalEntry {
  type: "approval";
  v: 1;
  action_id: string;
  at: string;
  agent_id: string;
  commitment: string;
  /**
   * `expired` and `cancelled` end the action without a vote. `rejection_lifted` ends the effect of an earlier `deny` on
   * duplicate requests.
   */
  verdict: "approve" | "deny" | "expired" | "cancelled" | "rejection_lifted";
  /** The voter or the credential that cancelled the action; null if the approval expired. */
  by: Actor | null;
  comment: string | null;
  /** Whether the person behind the agent confirmed their own action, in the mode `self_confirm`. */
  self_approval: boolean;
  /**
   * The delegation that the approver used, and the principal of the delegator. The vote also counts for the delegator's
   * groups. Null if the approver used no delegation.
   */
  delegation: { id: string; from: string } | null;
  /** Whether the approver approved without a second approver (break-glass). A `break_glass` entry follows. */
  break_glass: boolean;
  /** The grant that was created with the vote. Its entry precedes this one. Null if there is no grant. */
  grant: (VoteGrantTerms & { id: string }) | null;
  /**
   * The approver's groups at the time of the vote, restricted to groups that the approval requires. Empty unless this
   * is a vote.
   */
  groups: string[];
  /** Whether the approver was in none of the requester's groups. False if the requester's groups are unknown. */
  independent: boolean;
  /** The signature of the vote with a passkey; null if it was not signed. */
  gesture: VoteSignature | null;
  /**
   * Salted commitment to the preview that the approver saw; null if there was no preview or this is not a vote.
   * Lowercase hex.
   */
  preview: string | null;
  /** `questionsDigest` of the questions so far; null if there are no questions or this is not a vote. */
  questions: string | null;
  /**
   * `actionListDigest` of the actions that remain after a vote on a plan; null for other votes. The vote becomes void
   * when the list changes.
   */
  plan: string | null;
  /**
   * Commitment to the pinned values that the voter saw: `pins` of the newest request for approval. Absent without pins,
   * and for entries that are not votes.
   */
  pins?: string;
  /** Number of distinct approvers so far, including this approver. */
  approvals: number;
  quorum: number;
  status: "pending_approval" | "approved" | "denied" | "expired" | "cancelled";
  /**
   * Deadline for starting, if this entry approves the action; for `expired`, the deadline that has passed, if it was
   * for starting. Null otherwise.
   */
  approved_until: string | null;
  /** Expiry of the rejection. Until then, duplicate requests are denied. Null if the rejection does not deny them. */
  rejection_until: string | null;
}

/**
 * An approver asked the agent a question about its pending action, or the agent answered. The status does not change.
 */
export interface QuestionEntry {
  type: "question";
  v: 1;
  action_id: string;
  at: string;
  agent_id: string;
  commitment: string;
  phase: "ask" | "answer";
  /** Number of the question within the action, starting at 1. */
  number: number;
  /** The approver who asked; for an answer, the agent's credential. */
  by: Actor;
  /** SHA-256(salt ‖ SHA-256(canonical `{text}`)), with a separate salt. */
  text: string;
}

/** A machine reviewer answered about a pending action, or failed to answer. The answer is not a vote. */
export interface ReviewEntry {
  type: "review";
  v: 1;
  action_id: string;
  at: string;
  agent_id: string;
  commitment: string;
  /** Name of the reviewer in the policies. */
  reviewer: string;
  /**
   * Version of the reviewer's model, prompt or rules, from its answer or else from its configuration; null if the
   * reviewer was not called.
   */
  version: string | null;
  /** Sequence number of the entry that made the action pending. */
  asked: number;
  /** SHA-256(salt ‖ SHA-256(request to the reviewer)); null if the reviewer was not called. */
  input: string | null;
  /** The answer; null if the reviewer gave no valid answer in time. */
  answer: ReviewAnswer | null;
  /** Why there is no answer; null if there is an answer. */
  fault: ReviewFault | null;
  /** Reason that the reviewer gave. */
  comment: string | null;
  /** Milliseconds from the call to its answer, fault or timeout. */
  latency_ms: number;
  /** Number of reviewers of the same request that have not answered yet. */
  outstanding: number;
  status: "pending_approval" | "approved" | "denied";
  /** Deadline for starting; null unless this answer approves the action. */
  approved_until: string | null;
  /** Time until which duplicate requests are denied; null unless this answer denies the action and duplicates of it. */
  rejection_until: string | null;
}

/**
 * An open action was evaluated again: after a vote, a start, a change or a request for a permit, or because machine
 * reviewers approved it. Recorded for every permit and change; otherwise only if the action is now denied or needs more
 * approvals.
 */
export interface RedecisionEntry {
  type: "redecision";
  v: 1;
  action_id: string;
  at: string;
  agent_id: string;
  commitment: string;
  occasion: "vote" | "start" | "permit" | "review" | "edit";
  /**
   * The credential that voted, tried to start the action, requested the permit, or changed the request; null for a
   * review.
   */
  by: Actor | null;
  policy_set: string | null;
  facts: RecordedFacts;
  decision: Decision;
  status: "denied" | "pending_approval" | "allowed" | "approved";
  /** Approvals that the action now requires, and the deadline for them; null if approval is not required. */
  quorum: number | null;
  expires_at: string | null;
  /**
   * The approvers that are required after this entry: the earlier requirement combined with the requirement of this
   * decision. Null unless the action is pending.
   */
  approvers: ApproverPlan[] | null;
  /**
   * An approver's change of the request; null unless `occasion` is `edit`. From this entry, `commitment` is the
   * commitment to the effective request, and earlier votes are void.
   */
  edit: { previous: string; comment: string | null } | null;
  /**
   * Commitment to the values of the decision's pins. Absent without pins. If the action is pending and this differs
   * from the previous commitment, earlier votes are void.
   */
  pins?: string;
}

export interface ExecutionEntry {
  type: "execution";
  v: 1;
  action_id: string;
  at: string;
  agent_id: string;
  commitment: string;
  /** `no_result`: no result was reported in time, so the outcome is unknown. */
  phase: "start" | "no_result" | "result";
  /**
   * Who started the action, reported the result, or reported the outcome after it was unknown; null for `no_result`.
   */
  by: Actor | null;
  /** SHA-256 of the permit that was used; null unless this is a start with a permit. */
  permit: string | null;
  /**
   * SHA-256 of the caller's `attempt` identifier; null unless this is a start for which the caller sent an `attempt`.
   */
  attempt: string | null;
  success: boolean | null;
  /** SHA-256(salt ‖ SHA-256(canonical `{error, meta, success}`)); null unless this is a result. */
  result: string | null;
  /** How the person who reported an unknown outcome knows it; null for other entries. Stays in the ledger forever. */
  comment: string | null;
  /** Amounts that the result reported for limits, such as `cost_usd`. Absent without a report. Stays in the ledger. */
  usage?: Record<string, number>;
  /**
   * Commitment to the pinned values that were read at the start. Equal to those that the approvers saw. Absent without
   * pins.
   */
  pins?: string;
  status: "executing" | "unknown" | "succeeded" | "failed";
}

/**
 * The request, the limit usage and the result were deleted from the store. The action's other entries still contain
 * commitments to the deleted values. The only entry about the action that can follow this one lifts its rejection.
 */
export interface ErasureEntry {
  type: "erasure";
  v: 1;
  action_id: string;
  at: string;
  agent_id: string;
  /** The commitment from the action's decision. */
  commitment: string;
  /**
   * `asked`: someone requested the erasure. `subject`: a person requested the erasure of their data, which the action
   * contained; the entry does not identify the person. `retention`: the configured retention period ended.
   */
  cause: "asked" | "subject" | "retention";
  /**
   * Digests of the erased request that the row retains while the action's rejection is in force, so that the same
   * request stays denied: of the submitted request, and of the changed request if there is one. Absent if no rejection
   * is in force.
   */
  rejected?: string[];
  /** Stays in the ledger forever. */
  reason: string;
  /** The credential that requested the erasure; null for `retention`. */
  by: Actor | null;
}

/**
 * One part of an action's content was deleted from the store, because its retention period ended. The request remains.
 */
export interface PartErasureEntry {
  type: "part_erasure";
  v: 1;
  action_id: string;
  at: string;
  agent_id: string;
  commitment: string;
  part: ErasablePart;
  reason: string;
  /** Null, because only the retention period erases parts. */
  by: null;
}

/** An entry that changes the row of an action. */
export type ChangeEntry = ApprovalEntry | RedecisionEntry | QuestionEntry | ReviewEntry | ExecutionEntry;
/** An entry about the deletion of an action's content, or of a part of it. */
export type ErasingEntry = ErasureEntry | PartErasureEntry;
