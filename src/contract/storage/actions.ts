/** Actions, the votes on them, and the idempotency keys of requests. */
import type { RecordedAction } from "../../domain/action-history.ts";
import type { ActionStatus } from "../../domain/actions.ts";
import type { ErasablePart } from "../../domain/erasure.ts";
import type { StoredVisibility } from "../../domain/visibility.ts";

/** An action as recorded in the ledger, with the data for which the ledger contains only commitments. */
export interface ActionRow extends RecordedAction {
  /**
   * JSON of `{agent_id, context, operation, params, tool}`; `request_hash` is the digest of its canonical form. After
   * an erasure it is empty, like `request_hash` and `salt`.
   */
  request: string;
  request_hash: string;
  /** 32 random bytes, hex. The ledger holds SHA-256(salt ‖ request_hash). */
  salt: string;
  /**
   * Past data that the action's decisions read, as canonical JSON that matches the entries' commitments; null if there
   * is none.
   */
  past: string | null;
  /**
   * The submitted `meta`, as canonical JSON of `{meta, salt}` that matches the entry's commitment; null if there was
   * none.
   */
  meta: string | null;
  /** The request as an approver changed it, as canonical JSON of a `StoredEdit`; null if no one did. */
  effective: string | null;
  /** Digest of the request in `effective`; null if no one changed it. */
  effective_hash: string | null;
  /**
   * Questions of approvers and answers of the agent, as canonical JSON of `StoredQuestion[]`; null if there are none.
   */
  questions: string | null;
  approved_until: number | null;
  /** Time of the last duplicate request; null if there was none. Not in the ledger. */
  asked_at: number | null;
  /**
   * For each process, the time until which requests wait for the action, as a JSON object; null for none. Not in the
   * ledger.
   */
  waits: string | null;
  /** Canonical JSON of `{error, meta, success}`; null before a result is reported. */
  result: string | null;
}

/** Columns that a transition can change in addition to the status. */
export type ActionChange = Partial<
  Pick<
    ActionRow,
    | "reason"
    | "reason_code"
    | "quorum"
    | "expires_at"
    | "approved_until"
    | "rejection_until"
    | "past"
    | "questions"
    | "effective"
    | "effective_hash"
    | "started_at"
    | "started_by"
    | "result"
    | "waited_ms"
  >
> & { status: ActionStatus; updated_at: number };

/** The condition of a compare-and-set. The updating statement checks all members. */
export interface ActionGuard {
  status: ActionStatus;
  /** The row's `expires_at` must be later than this. */
  expires_after?: number;
  /** The row's `expires_at` must not be later than this. */
  expired_by?: number;
  /** The row's `approved_until` must be later than this. */
  approved_after?: number;
}

export interface ApprovalRow {
  action_id: string;
  /** The owner of the key that voted, or the key itself. Unique per action. */
  principal: string;
  key_id: string;
  approve: boolean;
  reason: string | null;
  self_approval: boolean;
  /** Principal of the delegator in whose place the approver voted; null if there is none. */
  on_behalf_of: string | null;
  /** Whether the approver approved alone in an emergency. */
  break_glass: boolean;
  seq: number;
  created_at: number;
}

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
}

/** The columns that identify an idempotency row. */
export type IdempotencyLookup = Pick<IdempotencyRow, "key_id" | "route" | "idempotency_key">;

/** Position in the list of idempotency rows, ordered by age. */
export type IdempotencyCursor = Pick<IdempotencyRow, "created_at" | "key_id" | "route" | "idempotency_key">;

export interface ActionFilter {
  visibility: StoredVisibility;
  status?: ActionStatus;
  /**
   * With a status: pending actions with `expires_at` at or before this count as expired, even if their status does not
   * say so yet.
   */
  as_of?: number;
  agent_id?: string;
  tool?: string;
  operation?: string;
  request_hash?: string;
  /** Only uses of this grant. */
  grant_id?: string;
  /** Only actions of this plan. */
  plan_id?: string;
  /** Only the first action of each plan. */
  first_of_plan?: true;
  /** Inclusive start. */
  since?: number;
  /** Exclusive end. */
  until?: number;
  /** Only actions whose `decision_seq` is smaller: the cursor. */
  before_seq?: number;
  offset?: number;
  limit: number;
}

/** Position in the list of pending actions, ordered by `expires_at`, then `decision_seq`. */
export interface PendingCursor {
  expires_at: number;
  decision_seq: number;
}

/** Selects the actions of an agent (in any spelling of its name), or those that a key submitted. */
export type ActionOwner = { agent_id: string } | { key_id: string };

/** Position in the list of approved actions, ordered by `approved_until`, then `decision_seq`. */
export interface ApprovedCursor {
  approved_until: number;
  decision_seq: number;
}

/** Selects decisions in a range of the ledger. */
export interface DecisionFilter {
  visibility: StoredVisibility;
  /** Inclusive start. */
  from_seq: number;
  /** Exclusive end: the cursor. */
  before_seq: number;
  /** Creation time of the action, inclusive. */
  since: number;
  /** Creation time of the action, exclusive. */
  until: number;
  limit: number;
}

/** The input of a decision, and the entry that records it. */
export interface DecisionInput {
  seq: number;
  action_id: string;
  created_at: number;
  /** The request as in the action's row: JSON, or empty after an erasure. */
  request: string;
  past: string | null;
  /** The entry of the decision. */
  bytes: Uint8Array;
}

export interface ActionReads {
  action(id: string): Promise<ActionRow | null>;
  /** Returns the existing actions among these ids, once each, in any order. */
  actionsById(ids: readonly string[]): Promise<ActionRow[]>;
  /**
   * Returns an open action that this key submitted with this request hash: allowed or approved with
   * `approved_until > now`, or else pending with `expires_at > now`. If there are several, returns the one that expires
   * last, and among equals the newest.
   */
  openAction(submittedBy: string, requestHash: string, now: number): Promise<ActionRow | null>;
  /**
   * Returns the action with this request hash or effective hash whose `rejection_until` is the latest and later than `now`.
   */
  rejectedAction(requestHash: string, now: number): Promise<ActionRow | null>;
  /** Lists actions, newest first (descending `decision_seq`). */
  actions(filter: ActionFilter): Promise<ActionRow[]>;
  /**
   * Returns the sequence numbers of the first and the last decision on actions that were created in the span; null if
   * there are none.
   */
  decisionSpan(since: number, until: number): Promise<{ first: number; last: number } | null>;
  /** Lists decisions, newest first (descending `seq`). */
  decisions(filter: DecisionFilter): Promise<DecisionInput[]>;
  /** Lists pending actions with `expires_at <= now`, oldest expiry first. */
  overdueActions(now: number, limit: number): Promise<ActionRow[]>;
  /** Lists pending actions after a cursor, earliest expiry first. */
  pendingActions(visibility: StoredVisibility, after: PendingCursor, limit: number): Promise<ActionRow[]>;
  /** Lists approved actions after a cursor, earliest `approved_until` first. */
  approvedActions(after: ApprovedCursor, limit: number): Promise<ActionRow[]>;
  /**
   * Lists the owner's open actions, in any order: pending ones with `expires_at > now`, and allowed or approved ones
   * with `approved_until > now`.
   */
  openActionsOf(owner: ActionOwner, now: number, limit: number): Promise<ActionRow[]>;
  /** Returns the number of pending actions with `expires_at > now`. */
  pendingCount(visibility: StoredVisibility, now: number): Promise<number>;
  /**
   * Counts the actions of a key that required approval when they were submitted, and the different hours (UTC) in which they
   * were submitted. Counts the newest `most` actions with `since <= created_at < until`.
   */
  approvalRequests(
    keyId: string,
    since: number,
    until: number,
    most: number,
  ): Promise<{ requests: number; hours: number }>;
  /** Returns the creation time of the oldest pending action with `expires_at > now`; null if there is none. */
  oldestPending(now: number): Promise<number | null>;
  /** Returns the smallest `expires_at` of a pending action. */
  nextExpiry(): Promise<number | null>;
  approvals(actionId: string): Promise<ApprovalRow[]>;
  idempotency(keyId: string, route: string, idempotencyKey: string): Promise<IdempotencyRow | null>;
  /** Returns the existing rows for several keys, in any order. */
  idempotencies(names: readonly IdempotencyLookup[]): Promise<IdempotencyRow[]>;
  /** Lists rows with `created_at < before` after a position, in ascending order of the position's members. */
  idempotencyBefore(before: number, after: IdempotencyCursor, limit: number): Promise<IdempotencyRow[]>;
}

export interface ActionWrites {
  insertAction(row: ActionRow): Promise<void>;
  /** Sets `asked_at` and `waits`. Does nothing if the action does not exist. */
  noteAsked(id: string, askedAt: number, waits: string | null): Promise<void>;
  /** Compare-and-set in one statement. Resolves to false and changes nothing if the guard does not match. */
  updateAction(id: string, guard: ActionGuard, change: ActionChange): Promise<boolean>;
  /**
   * Clears request, request_hash and salt, and sets past, meta, questions, effective, effective_hash and result to
   * null. Compare-and-set: resolves to false and changes nothing if the action does not exist, is pending or was
   * erased. After the commit, the store must not contain the data any more, as far as the store can control that.
   * docs/erasure.md describes this for each store.
   */
  eraseAction(id: string, at: number): Promise<boolean>;
  /**
   * Sets one column to null, with the same guarantee as `eraseAction`. Compare-and-set: resolves to false and changes
   * nothing if it is null, or if the action does not exist, is pending or was erased.
   */
  eraseActionPart(id: string, part: ErasablePart): Promise<boolean>;
  /** Resolves to false and changes nothing if this principal already voted on the action. */
  insertApproval(row: ApprovalRow): Promise<boolean>;
  /** Removes all votes on the action. */
  deleteApprovals(actionId: string): Promise<void>;
  insertIdempotency(row: IdempotencyRow): Promise<void>;
  /** Resolves to false if the row does not exist. */
  deleteIdempotency(keyId: string, route: string, idempotencyKey: string): Promise<boolean>;
}
