/** Requests and answers of the API, as the client's callers write and read them. */

export interface ActionRequest {
  agent_id: string;
  tool: string;
  operation: string;
  params?: Record<string, unknown>;
  context?: Record<string, unknown>;
}

export type ActionStatus =
  | "allowed"
  | "denied"
  | "pending_approval"
  | "approved"
  | "expired"
  | "cancelled"
  | "executing"
  | "succeeded"
  | "failed";

/** The members that programs branch on; the whole record is there at run time. */
export interface ActionRecord {
  id: string;
  agent_id: string;
  tool: string;
  operation: string;
  params: Record<string, unknown>;
  context: Record<string, unknown>;
  meta: Record<string, unknown>;
  status: ActionStatus;
  decision: "allow" | "deny" | "require_approval";
  outcome: "EXECUTE" | "HALT" | "ABSTAIN";
  reason: string;
  reason_code: string;
  risk_level: string | null;
  policy: string | null;
  rule: string | null;
  decision_hash: string;
  /** Until when it may start; null unless it was allowed or approved. */
  approved_until: string | null;
  /** In the answer to a request for one. */
  permit: string | null;
  permit_expires_at: string | null;
  expires_at: string | null;
  approval_token?: string;
  approvals: { approver: string; approve: boolean; reason: string | null }[];
  approvals_needed: number | null;
  /** Whether the action's agent waits for the verdict at this moment. */
  waiting: boolean;
  /** When it was last asked for: submitted, joined or waited for. */
  asked_at: string;
  result: { success: boolean; error: string | null; meta: Record<string, unknown> } | null;
  /** When `params`, `context`, `meta` and the result were erased: they are empty then. */
  erased_at: string | null;
  created_at: string;
}

export interface ActionResult {
  success: boolean;
  error?: string | null;
  meta?: Record<string, unknown>;
  /** Of the start that this ends. With it the result of another start is never reported, whoever made that one. */
  attempt?: string;
}

export interface ActionQuery {
  status?: ActionStatus | undefined;
  agent_id?: string | undefined;
  tool?: string | undefined;
  operation?: string | undefined;
  /** RFC 3339. */
  since?: string | undefined;
  until?: string | undefined;
  /** Of one page. */
  limit?: number | string | undefined;
  cursor?: string | undefined;
}

export interface ActionPage {
  actions: ActionRecord[];
  next_cursor: string | null;
}

export interface CallOptions {
  signal?: AbortSignal | undefined;
}

export interface SubmitOptions extends CallOptions {
  /** The open action of the same request instead of another one, if there is one: asking again is safe. */
  join?: boolean | undefined;
  /** Trace id, session, tool call id: kept and shown, and no part of what is asked. At most 4 KiB of JSON. */
  meta?: Record<string, unknown> | undefined;
  /** Seconds to wait for a verdict. */
  wait?: number | undefined;
  /** Ask for a permit in the answer, where the action may start. */
  permit?: boolean | undefined;
  /** The same key with the same request gives the same action, for ever. */
  idempotencyKey?: string | undefined;
}

export interface WaitOptions extends CallOptions {
  /** Seconds after which the action is given as it stands. Default: until there is a verdict. */
  timeout?: number | undefined;
}

export interface StartOptions extends CallOptions {
  /** Needed by a key that did not submit the action. */
  permit?: string | undefined;
  /** From `newAttempt`, and of this start alone. Default: a new one. */
  attempt?: string | undefined;
}

export interface VoteOptions extends CallOptions {
  reason?: string | undefined;
}

/** One entry of the ledger, as it is followed. */
export interface LedgerEvent {
  seq: number;
  hash: string;
  type: string;
  at: string;
  action_id: string | null;
  entry: Record<string, unknown>;
}

export interface EventQuery extends CallOptions {
  /** Only what follows this sequence; -1 for all there ever were. Default: what happens from now on. */
  after?: number | undefined;
  /** Types of entries. */
  type?: string | readonly string[] | undefined;
  agent_id?: string | undefined;
  tool?: string | undefined;
  action_id?: string | undefined;
}
