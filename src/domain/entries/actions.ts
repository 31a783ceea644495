/** Ledger entries about one action, from its decision to its end. */
import type { ApproverPlan } from "../approvers.ts";
import type { DeniedBy } from "../denied-by.ts";
import type { ErasablePart } from "../erasure.ts";
import type { Gesture, VotedGrant } from "../gesture.ts";
import type { Decision, RecordedFacts } from "../policy/policy-types.ts";
import type { ReviewAnswer, ReviewFault } from "../reviews.ts";

/** The credential that caused the entry. Always taken from authentication, never from a request body. */
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
  submitted_by: Actor;
  policy_set: string | null;
  facts: RecordedFacts;
  decision: Decision;
  status: "allowed" | "denied" | "pending_approval";
  /** What denied the action; null if it was not denied. */
  denied_by: DeniedBy | null;
  expires_at: string | null;
  /** Deadline for starting; null if the action cannot start. */
  approved_until: string | null;
  /** SHA-256(salt ‖ SHA-256(canonical `{meta}`)), with a salt of its own; null without `meta`. */
  meta: string | null;
  /** The plan that the action was submitted with, and its position there, starting at 1; null if there is none. */
  plan: { id: string; position: number } | null;
}

export interface ApprovalEntry {
  type: "approval";
  v: 1;
  action_id: string;
  at: string;
  agent_id: string;
  commitment: string;
  /**
   * `expired` and `cancelled` end the action without a vote. `rejection_lifted` ends the effect of an earlier `deny`.
   */
  verdict: "approve" | "deny" | "expired" | "cancelled" | "rejection_lifted";
  /** Null if the approval expired. */
  by: Actor | null;
  comment: string | null;
  /** Whether the person behind the agent confirmed their own action, in the mode `self_confirm`. */
  self_approval: boolean;
  /**
   * The delegation that the approver used, and the principal of the user who gave it, in whose groups the vote counts,
   * too. Null if the approver voted for themselves alone.
   */
  delegation: { id: string; from: string } | null;
  /** Whether the approver approved alone in an emergency. A `break_glass` entry follows. */
  break_glass: boolean;
  /** The grant that the vote gives, whose entry is before this one; null if it gives none. */
  grant: (VotedGrant & { id: string }) | null;
  /** Groups of the approver at the time of the vote that the approval names. Empty unless this is a vote. */
  groups: string[];
  /** Whether the approver was in none of the requester's groups. False if those are unknown. */
  independent: boolean;
  /** The signature of the vote with a passkey; null if it was not signed. */
  gesture: Gesture | null;
  /** Salted commitment to the preview that the approver was shown; null if there was none. Lowercase hex. */
  preview: string | null;
  /** `questionsDigest` of what approvers asked so far; null if nothing was asked, or unless this is a vote. */
  questions: string | null;
  /**
   * `actionListDigest` of the actions that remain after the vote on a plan; null unless the vote is part of one. It is
   * void once that list changes.
   */
  plan: string | null;
  /** The number of distinct approvers so far, including this one. */
  approvals: number;
  quorum: number;
  status: "pending_approval" | "approved" | "denied" | "expired" | "cancelled";
  /** Deadline for starting, also if that is what expired; null if the action cannot start. */
  approved_until: string | null;
  /** End of the time in which the rejection denies duplicate requests; null if it denies none. */
  rejection_until: string | null;
}

/** An approver asked the agent about its pending action, or the agent answered. Changes no status. */
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
  /** The approver; for an answer the agent's credential. */
  by: Actor;
  /** SHA-256(salt ‖ SHA-256(canonical `{text}`)), with a salt of its own. */
  text: string;
}

/** A machine reviewer answered about a pending action, or failed to. It is not a vote. */
export interface ReviewEntry {
  type: "review";
  v: 1;
  action_id: string;
  at: string;
  agent_id: string;
  commitment: string;
  /** The reviewer, as the policies name it. */
  reviewer: string;
  /** Version of its model, prompt or rules, as it reported it or as it is configured; null if it was not called. */
  version: string | null;
  /** Sequence number of the entry that made the action pending, which the reviewer was asked about. */
  asked: number;
  /** SHA-256(salt ‖ SHA-256(input)), where the input is what the reviewer was sent; null if it was not called. */
  input: string | null;
  /** Null if it gave no valid answer in time. */
  answer: ReviewAnswer | null;
  /** Why there is no answer; null if there is one. */
  fault: ReviewFault | null;
  /** Reason that the reviewer gave. */
  comment: string | null;
  /** Milliseconds from the call to its answer, fault or timeout. */
  latency_ms: number;
  /** Number of reviewers of the same request that have not answered yet. */
  outstanding: number;
  status: "pending_approval" | "approved" | "denied";
  /** Deadline for starting; null unless this approves the action. */
  approved_until: string | null;
  /** End of the time in which the denial refuses the same request; null if it refuses nothing. */
  rejection_until: string | null;
}

/**
 * An open action was decided again because someone voted on it, tried to start it, changed it, or requested a permit, or
 * because machine reviewers approved it. Recorded for every permit and change; otherwise only if the action is now denied
 * or needs more approvals.
 */
export interface RedecisionEntry {
  type: "redecision";
  v: 1;
  action_id: string;
  at: string;
  agent_id: string;
  commitment: string;
  occasion: "vote" | "start" | "permit" | "review" | "edit";
  /** The credential that voted, tried to start the action, requested the permit, or changed the request; null for a review. */
  by: Actor | null;
  policy_set: string | null;
  facts: RecordedFacts;
  decision: Decision;
  status: "denied" | "pending_approval" | "allowed" | "approved";
  /** Approvals that the action now requires, and the deadline for them; null if it requires none. */
  quorum: number | null;
  expires_at: string | null;
  /**
   * Who has to approve from this entry on: what the action required before, and what the decision requires. Null unless
   * the action is pending.
   */
  approvers: ApproverPlan[] | null;
  /**
   * Present if an approver changed the request: `commitment` is of the effective request from here on, and earlier votes
   * are void. Null otherwise.
   */
  edit: { previous: string; comment: string | null } | null;
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
  /** Who started the action, reported the result, or settled the unknown outcome; null for `no_result`. */
  by: Actor | null;
  /** SHA-256 of the permit that was used; null unless this is a start with a permit. */
  permit: string | null;
  /** SHA-256 of the caller's `attempt` identifier; null unless this is a start that named one. */
  attempt: string | null;
  success: boolean | null;
  /** SHA-256(salt ‖ SHA-256(canonical `{error, meta, success}`)); null unless this is a result. */
  result: string | null;
  /**
   * How the person who settled the unknown outcome knows it; null if this settles none. Stays in the ledger forever.
   */
  comment: string | null;
  status: "executing" | "unknown" | "succeeded" | "failed";
}

/**
 * The request, the limit usage and the result were deleted from the store. The commitments in the action's other
 * entries can no longer be opened. No entry follows this one.
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
   * `asked`: someone requested the erasure. `subject`: it was part of the request of a person whose data the action
   * contained; the entry does not name the person. `retention`: the configured retention time ended.
   */
  cause: "asked" | "subject" | "retention";
  /** Stays in the ledger forever. */
  reason: string;
  /** Null for retention. */
  by: Actor | null;
}

/**
 * One part of what the action's entries commit to was deleted from the store, because its retention period ended. The request
 * is kept.
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
