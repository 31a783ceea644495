/**
 * The columns of an action's row that its entries determine. The service writes these columns with the functions of this
 * file, and the audit recomputes them with the same functions.
 */
import { encodeAuthority } from "./action-authority.ts";
import type { ActionStatus } from "./actions.ts";
import type { ApprovalEntry, ChangeEntry, DecisionEntry, RedecisionEntry, ReviewEntry } from "./entries.ts";
import type { Effect, ReasonCode, Risk } from "./policy/policy-types.ts";
import { describeReviewDenial } from "./reviews.ts";
import { parseEntryTime } from "./time.ts";

/** The columns of an action's row that its entries determine. Member names are column names. */
export interface RecordedAction {
  id: string;
  agent_id: string;
  tool: string;
  operation: string;
  status: ActionStatus;
  decision: Effect;
  reason: string;
  reason_code: ReasonCode;
  risk_level: Risk | null;
  policy: string | null;
  rule: string | null;
  policy_version: number | null;
  policy_hash: string | null;
  decision_seq: number;
  decision_hash: string;
  /**
   * The submitting key, with its agent binding and owner at the time of the submission. Approvers are compared with
   * this key.
   */
  submitted_by: string;
  submitted_agent: string | null;
  submitted_owner: string | null;
  /** Number of approvals needed; null if approval was not required. */
  quorum: number | null;
  /** Deadline for approval in milliseconds; null unless approval was required. */
  expires_at: number | null;
  /** Deadline for starting; null unless the action was allowed or approved. */
  approved_until: number | null;
  /** Expiry of the rejection. Until then, duplicate requests are denied. Null if the rejection does not deny them. */
  rejection_until: number | null;
  /** The permission, such as a grant, that allowed the action instead of a vote when it was decided; null if none did. */
  allowed_by: string | null;
  /** The action's plan, and its position in the plan from 1; null if the action is not part of a plan. */
  plan_id: string | null;
  plan_position: number | null;
  /** The authority that the request names, and its delegators, as canonical JSON; null if it names none. */
  authority: string | null;
  started_at: number | null;
  started_by: string | null;
  /** Milliseconds from the submission to the vote or review that ended the wait for approval; null if none did. */
  waited_ms: number | null;
  /** Time when the content (request, hash, salt, past, meta, questions, change and result) was erased; null before. */
  erased_at: number | null;
  created_at: number;
  updated_at: number;
}

/** The row of a vote, which its entry determines. Member names are column names. */
export interface RecordedVote {
  action_id: string;
  /** Principal of the voter: `user:<id>`, or `key:<id>` of a key without an owner. Unique per action. */
  principal: string;
  key_id: string;
  approve: boolean;
  reason: string | null;
  self_approval: boolean;
  /** Principal of the delegator on whose behalf the approver voted; null if the vote is in the approver's own name. */
  on_behalf_of: string | null;
  /** Whether the approver approved without a second approver (break-glass). */
  break_glass: boolean;
  /** Whether the approver signed the vote with a passkey. */
  signed: boolean;
  seq: number;
  created_at: number;
}

/**
 * Returns the columns after the decision on the submission.
 * @param place the sequence number of the entry, and its leaf hash in hex
 */
export function decidedColumns(entry: DecisionEntry, place: { seq: number; hash: string }): RecordedAction {
  const { decision, submitted_by: submitter } = entry;
  const created_at = parseEntryTime(entry.at);
  return {
    id: entry.action_id,
    agent_id: entry.agent_id,
    tool: entry.tool,
    operation: entry.operation,
    status: entry.status,
    decision: decision.effect,
    reason: decision.reason,
    reason_code: decision.reason_code,
    risk_level: decision.risk_level,
    policy: decision.policy,
    rule: decision.rule,
    policy_version: decision.policy_version,
    policy_hash: entry.policy_set,
    decision_seq: place.seq,
    decision_hash: place.hash,
    submitted_by: submitter.key_id,
    submitted_agent: submitter.agent_id,
    submitted_owner: submitter.owner,
    quorum: decision.approval?.quorum ?? null,
    expires_at: parseTime(entry.expires_at),
    approved_until: entry.status === "allowed" ? parseTime(entry.approved_until) : null,
    rejection_until: null,
    allowed_by: decision.reason_code === "GRANTED" ? (entry.facts.grant?.id ?? null) : null,
    plan_id: entry.plan?.id ?? null,
    plan_position: entry.plan?.position ?? null,
    authority: encodeAuthority(entry.facts),
    started_at: null,
    started_by: null,
    waited_ms: null,
    erased_at: null,
    created_at,
    updated_at: created_at,
  };
}

/** The columns that change after the decision. */
export type ChangedColumns = Partial<
  Pick<
    RecordedAction,
    | "status"
    | "reason"
    | "reason_code"
    | "quorum"
    | "expires_at"
    | "approved_until"
    | "rejection_until"
    | "started_at"
    | "started_by"
    | "waited_ms"
    | "updated_at"
  >
>;

/** Returns the columns that an entry about the action changes, with their new values. */
export function changedColumns({ created_at }: Pick<RecordedAction, "created_at">, entry: ChangeEntry): ChangedColumns {
  const at = parseEntryTime(entry.at);
  switch (entry.type) {
    case "question":
      return {};
    case "redecision":
      return { status: entry.status, updated_at: at, ...redecidedColumns(entry) };
    case "execution":
      return {
        status: entry.status,
        updated_at: at,
        ...(entry.phase === "start" && entry.by !== null ? { started_at: at, started_by: entry.by.key_id } : {}),
      };
    case "approval":
    case "review": {
      const isLifted = entry.type === "approval" && entry.verdict === "rejection_lifted";
      const common = { status: entry.status, updated_at: at, ...(isLifted ? { rejection_until: null } : {}) };
      // An action that was withdrawn or that expired keeps its deadlines.
      const isAnswer = entry.type === "review" || entry.verdict === "approve" || entry.verdict === "deny";
      if (!isAnswer || entry.status === "pending_approval") return common;
      return { ...common, waited_ms: Math.max(0, at - created_at), ...answeredColumns(entry) };
    }
  }
}

/** Returns the columns that a redecision changes in addition to the status. */
function redecidedColumns({ status, decision, quorum, expires_at }: RedecisionEntry): ChangedColumns {
  const { reason } = decision;
  if (status === "denied") return { reason, reason_code: "NO_LONGER_ALLOWED" };
  if (status !== "pending_approval") return {};
  return {
    reason,
    reason_code: "MORE_APPROVALS_NEEDED",
    quorum,
    expires_at: parseTime(expires_at),
    approved_until: null,
    waited_ms: null,
  };
}

/** Returns the columns that change when a vote or review ends the wait for approval. */
function answeredColumns(entry: ApprovalEntry | ReviewEntry): ChangedColumns {
  if (entry.status === "approved") return { approved_until: parseTime(entry.approved_until) };
  const rejection = { rejection_until: parseTime(entry.rejection_until) };
  if (entry.type === "approval") return rejection;
  return { ...rejection, reason: describeReviewDenial(entry.reviewer, entry.comment), reason_code: "REVIEWER_DENIED" };
}

/** Returns the row of the vote that the entry records; null if it records none. */
export function votedColumns(entry: ChangeEntry & { seq: number }): RecordedVote | null {
  if (entry.type !== "approval" || entry.by === null) return null;
  if (entry.verdict !== "approve" && entry.verdict !== "deny") return null;
  return {
    action_id: entry.action_id,
    principal: entry.by.principal,
    key_id: entry.by.key_id,
    approve: entry.verdict === "approve",
    reason: entry.comment,
    self_approval: entry.self_approval,
    on_behalf_of: entry.delegation?.from ?? null,
    break_glass: entry.break_glass,
    signed: entry.gesture !== null,
    seq: entry.seq,
    created_at: parseEntryTime(entry.at),
  };
}

/**
 * Returns true if the entry makes the earlier votes void: an approver changed the request, pinned facts have changed, or
 * the vote is about another list of the plan's actions.
 * @param history the action before the entry
 */
export function voidsVotes(
  { pins, approvals }: { pins: string | null; approvals: readonly { plan: string | null }[] },
  entry: ChangeEntry,
): boolean {
  if (entry.type === "redecision")
    return entry.edit !== null || (entry.status === "pending_approval" && (entry.pins ?? null) !== pins);
  return entry.type === "approval" && entry.plan !== null && approvals.some(({ plan }) => plan !== entry.plan);
}

const parseTime = (text: string | null): number | null => (text === null ? null : parseEntryTime(text));
