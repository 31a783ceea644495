/** Actions, the votes on them, and the idempotency keys of requests. */
import type { ChangedColumns, RecordedAction, RecordedVote } from "../../domain/action-columns.ts";
import type { ActionStatus } from "../../domain/actions.ts";
import type { ErasablePart } from "../../domain/erasure.ts";
import type { StoredVisibility } from "../../domain/visibility.ts";

/** An action as recorded in the ledger, with the data for which the ledger contains only commitments. */
export interface ActionRow extends RecordedAction {
  /**
   * JSON of `{agent_id, context, operation, params, tool}`; `request_hash` is the digest of its canonical form. An
   * erasure sets `request`, `request_hash` and `salt` to empty strings.
   */
  request: string;
  request_hash: string;
  /** 32 random bytes, hex. The ledger contains SHA-256(salt ‖ request_hash). */
  salt: string;
  /**
   * Past data that the action's decisions read, as canonical JSON that matches the entries' commitments; null if there
   * is none or it was erased.
   */
  past: string | null;
  /**
   * The submitted `meta`, as canonical JSON of `{meta, salt}` that matches the entry's commitment; null if there was
   * none or it was erased.
   */
  meta: string | null;
  /**
   * The request after an approver or obligations changed it, as canonical JSON of a `StoredEdit`; null if it was not
   * changed or was erased.
   */
  effective: string | null;
  /** Digest of the request in `effective`; null if `effective` is null. */
  effective_hash: string | null;
  /**
   * Questions of approvers and answers of the agent, as canonical JSON of `StoredQuestion[]`; null if there are none or
   * they were erased.
   */
  questions: string | null;
  approved_until: number | null;
  /** Time of the last duplicate request; null if there was none. Not in the ledger. */
  asked_at: number | null;
  /**
   * JSON object that maps process ids to the deadline of the longest open wait (long poll) for this action; null if
   * there is none. Not in the ledger.
   */
  waits: string | null;
  /** Canonical JSON of `{error, meta, success}`; null before a result is reported, and after its erasure. */
  result: string | null;
}

/** Columns of a new action for which the ledger contains only commitments. */
export type DecidedContent = Pick<
  ActionRow,
  "request" | "request_hash" | "salt" | "past" | "meta" | "effective" | "effective_hash"
>;

/** Columns that change after the decision, for which the ledger contains only commitments. */
export type ChangedContent = Pick<
  ActionRow,
  "request_hash" | "salt" | "past" | "questions" | "effective" | "effective_hash" | "result"
>;

/** Columns that a status change can update in addition to the status. */
export type ActionChange = Omit<ChangedColumns, "status" | "updated_at"> &
  Partial<ChangedContent> & { status: ActionStatus; updated_at: number };

/** The condition of a compare-and-set. The statement that updates the row checks all members. */
export interface ActionGuard {
  status: ActionStatus;
  /** The row's `expires_at` must be later than this. */
  expires_after?: number;
  /** The row's `expires_at` must not be later than this. */
  expired_by?: number;
  /** The row's `approved_until` must be later than this. */
  approved_after?: number;
}

/** A vote. */
export type ApprovalRow = RecordedVote;

export interface IdempotencyRow {
  key_id: string;
  /** Method and path template, e.g. `POST /v1/actions`. */
  route: string;
  idempotency_key: string;
  /** SHA-256 of the canonical body, hex. Empty for actions, whose rows contain the digest and can be erased. */
  body_hash: string;
  /** Id of the resource that the first request created or joined. */
  resource_id: string;
  /** Creation time of that resource. */
  created_at: number;
  /** Seal of the other members (`RowSeals`). The store does not interpret it. */
  seal: string;
}

/** The columns that identify an idempotency row. */
export type IdempotencyLookup = Pick<IdempotencyRow, "key_id" | "route" | "idempotency_key">;

/** Position in the list of idempotency rows, oldest first. */
export type IdempotencyCursor = Pick<IdempotencyRow, "created_at" | "key_id" | "route" | "idempotency_key">;

/** ASCII characters in lowercase. They match both cases. `_`, `%` and `\` match any one character. */
export interface ContainedText {
  /** ASCII characters, in lowercase. A letter matches both cases. `_`, `%` and `\` match any one character. */
  text: string;
  /** The beginning of a UUID, in lowercase; empty if ids do not count. */
  id_prefix: string;
}

export interface ActionFilter {
  visibility: StoredVisibility;
  status?: ActionStatus;
  /**
   * Used only with a `status`. Pending actions with `expires_at` at or before this time count as expired, even if their
   * status has not been updated yet.
   */
  as_of?: number;
  agent_id?: string;
  tool?: string;
  operation?: string;
  /**
   * No index contains the values of `decision`, `policy`, `rule` and `contains`. Use these filters only with
   * `from_seq`, because such a list reads all actions that match the other filters.
   */
  decision?: ActionRow["decision"];
  policy?: string;
  rule?: string;
  contains?: ContainedText;
  request_hash?: string;
  /** Restricts the list to actions that this permission allowed. */
  allowed_by?: string;
  /** Restricts the list to actions of this plan. */
  plan_id?: string;
  /** Restricts the list to the first action of each plan. */
  first_of_plan?: true;
  /** Inclusive start of the creation time, which never decreases with `decision_seq`. */
  since?: number;
  /** Exclusive end of the creation time. */
  until?: number;
  /** Inclusive start of `decision_seq`. */
  from_seq?: number;
  /** Lists only actions whose `decision_seq` is smaller: the cursor. */
  before_seq?: number;
  offset?: number;
  limit: number;
}

/** Position in the list of pending actions, ordered by `expires_at`, then `decision_seq`. */
export interface PendingCursor {
  expires_at: number;
  decision_seq: number;
}

/**
 * Selects actions: those of an agent (in any spelling of its name), those of an agent that name an authority, or those
 * that a key submitted.
 */
export type ActionOwner = { agent_id: string; authority?: string } | { key_id: string };

/** Position in the list of approved actions, ordered by `approved_until`, then `decision_seq`. */
export interface ApprovedCursor {
  approved_until: number;
  decision_seq: number;
}

/** Selects decisions in a range of the ledger. */
export interface DecisionFilter {
  visibility: StoredVisibility;
  /** Inclusive start of the sequence numbers. */
  from_seq: number;
  /** Exclusive end of the sequence numbers: the cursor. */
  before_seq: number;
  /** Inclusive start of the action's creation time. */
  since: number;
  /** Exclusive end of the action's creation time. */
  until: number;
  limit: number;
}

/** The input of a decision, and the entry that records it. */
export interface DecisionInput {
  seq: number;
  action_id: string;
  created_at: number;
  /** The `request` of the action's row: JSON, or an empty string after an erasure. */
  request: string;
  past: string | null;
  /** The entry of the decision. */
  bytes: Uint8Array;
}

/**
 * Number of a key's open allowed actions that `openAction` searches. Bounds the time under the ledger's lock for a key
 * that submits many actions and starts none. A person approved an approved action, so all of those are searched.
 */
export const MAX_JOINABLE_ALLOWED = 1000;

export interface ActionReads {
  action(id: string): Promise<ActionRow | null>;
  /** Returns the actions with these ids that exist, once each, in any order. */
  actionsById(ids: readonly string[]): Promise<ActionRow[]>;
  /**
   * Returns an open action that this key submitted with this request hash. Prefers allowed and approved actions with
   * `approved_until > now` over pending actions with `expires_at > now`. Of these, returns the action with the latest
   * deadline; of actions with the same deadline, returns the newest. Can ignore allowed actions other than the
   * `MAX_JOINABLE_ALLOWED` of this key with the latest deadlines.
   */
  openAction(submittedBy: string, requestHash: string, now: number): Promise<ActionRow | null>;
  /**
   * Of the actions with this request hash or effective hash and `rejection_until > now`, returns the action with the
   * latest `rejection_until`.
   */
  rejectedAction(requestHash: string, now: number): Promise<ActionRow | null>;
  /** Lists actions, newest first (descending `decision_seq`). */
  actions(filter: ActionFilter): Promise<ActionRow[]>;
  /**
   * Returns the sequence numbers of the first and the last decision on actions with `since <= created_at < until`; null
   * if there are none.
   */
  decisionSpan(since: number, until: number): Promise<{ first: number; last: number } | null>;
  /** Lists decisions, newest first (descending `seq`). */
  decisions(filter: DecisionFilter): Promise<DecisionInput[]>;
  /** Lists pending actions with `expires_at <= now`, oldest expiry first. */
  overdueActions(now: number, limit: number): Promise<ActionRow[]>;
  /** Lists pending actions after a cursor, earliest expiry first. With `contains`, reads all of them. */
  pendingActions(
    visibility: StoredVisibility,
    after: PendingCursor,
    limit: number,
    contains?: ContainedText,
  ): Promise<ActionRow[]>;
  /** Lists approved actions after a cursor, earliest `approved_until` first. */
  approvedActions(after: ApprovedCursor, limit: number): Promise<ActionRow[]>;
  /**
   * Lists the owner's open actions, in any order: pending actions with `expires_at > now`, and allowed or approved
   * actions with `approved_until > now`.
   */
  openActionsOf(owner: ActionOwner, now: number, limit: number): Promise<ActionRow[]>;
  /** Returns the number of pending actions with `expires_at > now`. */
  pendingCount(visibility: StoredVisibility, now: number): Promise<number>;
  /**
   * Counts a key's actions that required approval when they were submitted, and the distinct hours (UTC) in which they
   * were submitted. Counts at most the newest `most` actions with `since <= created_at < until`.
   */
  approvalRequests(
    keyId: string,
    since: number,
    until: number,
    most: number,
  ): Promise<{ requests: number; hours: number }>;
  /** Returns the creation time of the oldest pending action with `expires_at > now`; null if there is none. */
  oldestPending(now: number): Promise<number | null>;
  /** Returns the smallest `expires_at` of the pending actions. */
  nextExpiry(): Promise<number | null>;
  /** Lists the votes on an action, in the order of the ledger. */
  approvals(actionId: string): Promise<ApprovalRow[]>;
  /** Returns the votes on these actions, in any order. */
  approvalsOfActions(actionIds: readonly string[]): Promise<ApprovalRow[]>;
  idempotency(keyId: string, route: string, idempotencyKey: string): Promise<IdempotencyRow | null>;
  /** Returns the rows of these keys that exist, in any order. */
  idempotencies(names: readonly IdempotencyLookup[]): Promise<IdempotencyRow[]>;
  /**
   * Lists rows with `created_at < before` after a position, sorted by the members of the position in ascending order.
   */
  idempotencyBefore(before: number, after: IdempotencyCursor, limit: number): Promise<IdempotencyRow[]>;
}

export interface ActionWrites {
  insertAction(row: ActionRow): Promise<void>;
  /** Sets `asked_at` and `waits`. Does nothing if the action does not exist. */
  noteAsked(id: string, askedAt: number, waits: string | null): Promise<void>;
  /** Compare-and-set in one statement. Resolves to false and changes nothing if the guard does not match. */
  updateAction(id: string, guard: ActionGuard, change: ActionChange): Promise<boolean>;
  /**
   * Clears request, request_hash and salt, sets past, meta, questions, effective, effective_hash and result to null,
   * and sets erased_at. Compare-and-set: resolves to false and changes nothing if the action does not exist, is pending
   * or was erased. After the commit, the store must no longer contain the data, as far as it can control that.
   * docs/erasure.md describes this for each store.
   */
  eraseAction(id: string, at: number): Promise<boolean>;
  /**
   * Sets one column to null, with the same guarantee as `eraseAction`. Compare-and-set: resolves to false and changes
   * nothing if the column is null, or if the action does not exist, is pending or was erased.
   */
  eraseActionPart(id: string, part: ErasablePart): Promise<boolean>;
  /** Adds a vote. Resolves to false and changes nothing if this principal already voted on the action. */
  insertApproval(row: ApprovalRow): Promise<boolean>;
  /** Removes all votes on the action. */
  deleteApprovals(actionId: string): Promise<void>;
  insertIdempotency(row: IdempotencyRow): Promise<void>;
  /** Deletes an idempotency row. Resolves to false if the row does not exist. */
  deleteIdempotency(keyId: string, route: string, idempotencyKey: string): Promise<boolean>;
}
