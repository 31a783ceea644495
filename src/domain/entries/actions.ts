/** What the ledger records of an action, from its decision to its end. */
import type { DeniedBy } from "../denied-by.ts";
import type { Decision, RecordedFacts } from "../policy/types.ts";

/** Who did something: always taken from the credential, never from a body. */
export interface Actor {
  key_id: string;
  principal: string;
  agent_id: string | null;
  owner: string | null;
}

export interface DecisionEntry {
  type: "decision";
  /** From version 3 on the facts hold what was used of limits as a commitment; from 4 on `decision.approval` says `valid_for_ms`, from 5 on `rejection_holds_ms`. */
  v: 1 | 2 | 3 | 4 | 5;
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
  /** Why it was denied; null where it was not. From version 5 on. */
  denied_by?: DeniedBy | null;
  expires_at: string | null;
  /** Until when it may start; null where it may not. From version 4 on; in 2 and 3 as `permit_expires_at`. */
  approved_until?: string | null;
  permit_expires_at?: string | null;
  /** SHA-256(salt ‖ SHA-256(canonical `{meta}`)), with a salt of its own; null where there is none. From version 4 on. */
  meta?: string | null;
}

export interface ApprovalEntry {
  type: "approval";
  v: 1 | 2 | 3 | 4;
  action_id: string;
  at: string;
  agent_id: string;
  commitment: string;
  /** `expired` and `cancelled` are outcomes without a vote; `rejection_lifted` ends what a `deny` began. */
  verdict: "approve" | "deny" | "expired" | "cancelled" | "rejection_lifted";
  /** Null when the clock decided. */
  by: Actor | null;
  comment: string | null;
  self_approval: boolean;
  /** Distinct approvers so far, this one included, and how many are needed. */
  approvals: number;
  quorum: number;
  status: "pending_approval" | "approved" | "denied" | "expired" | "cancelled";
  /** Until when it may start, or could where that is what expired; else null. From version 3 on; in 2 as `permit_expires_at`. */
  approved_until?: string | null;
  permit_expires_at?: string | null;
  /** Until when the rejection refuses the same request; null where it does not. From version 4 on. */
  rejection_until?: string | null;
}

/**
 * An open action was decided again: somebody voted on it, was to start it or asked for a permit. Every time for a
 * permit; else where it is denied now, or more people have to approve.
 */
export interface RedecisionEntry {
  type: "redecision";
  /** Version 1 is of actions that were denied, and its facts are without what was used of limits. From version 3 on `decision.approval` says `rejection_holds_ms`. */
  v: 1 | 2 | 3;
  action_id: string;
  at: string;
  agent_id: string;
  commitment: string;
  occasion: "vote" | "start" | "permit";
  /** Who voted, was to start it or asked. */
  by: Actor;
  policy_set: string | null;
  facts: RecordedFacts;
  decision: Decision;
  status: "denied" | "pending_approval" | "allowed" | "approved";
  /** How many have to approve, and until when they can, where they have to: as the action stands after it. From version 2 on. */
  quorum?: number | null;
  expires_at?: string | null;
}

export interface ExecutionEntry {
  type: "execution";
  v: 1 | 2 | 3;
  action_id: string;
  at: string;
  agent_id: string;
  commitment: string;
  phase: "start" | "result";
  by: Actor;
  /** SHA-256 of the permit that was used; null for a result, and from version 2 on where the submitter's key needed none. */
  permit: string | null;
  /** SHA-256 of what its caller named the start by; null for a result, and where it was not named. From version 3 on. */
  attempt?: string | null;
  success: boolean | null;
  /** SHA-256(salt ‖ SHA-256(canonical `{error, meta, success}`)); null for a start. */
  result: string | null;
  status: "executing" | "succeeded" | "failed";
}

/**
 * What was asked, what was used of limits, and what was reported are gone from the store: what other entries of the
 * action hold are commitments that nobody can open any more. Nothing follows it.
 */
export interface ErasureEntry {
  type: "erasure";
  v: 1;
  action_id: string;
  at: string;
  agent_id: string;
  /** The action's own, by which it was known before. */
  commitment: string;
  /** Somebody asked for it, or the time that the configuration keeps actions for was over. */
  cause: "asked" | "retention";
  /** Kept forever. */
  reason: string;
  /** Null for retention. */
  by: Actor | null;
}
