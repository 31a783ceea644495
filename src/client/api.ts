/**
 * Requests and answers of the API. Made of the OpenAPI document: change nothing here.
 *
 *   ASSENT_UPDATE=1 node test/run.mjs test/types/client-types.slow.test.ts
 */

export interface Action {
  id: string;
  agent_id: string;
  tool: string;
  operation: string;
  params: Record<string, unknown>;
  context: Record<string, unknown>;
  /** What was sent beside the request, with the request's `traceparent`; `{}` where nothing was. */
  meta: Record<string, unknown>;
  status: "allowed" | "denied" | "pending_approval" | "approved" | "expired" | "cancelled" | "executing" | "succeeded" | "failed";
  decision: "allow" | "deny" | "require_approval";
  /** `decision` in other words, EXECUTE for allow, ABSTAIN for require_approval, HALT for deny: what the policies said, whatever people said since. Whether the action may run now is its `status`. */
  outcome: "EXECUTE" | "ABSTAIN" | "HALT";
  reason: string;
  /** Stable; see docs/policies.md. */
  reason_code: string;
  /** Who denied it, where `status` is denied: the policies, a person, a person's earlier rejection of the same request, or a stop. Null for every other status. */
  denied_by: "policy" | "person" | "earlier_rejection" | "stop" | null;
  /** Who rejected it and why, where `denied_by` is person or earlier_rejection; else null. */
  rejection: {
    /** The action that was rejected: this one, or an earlier one. */
    action_id: string;
    /** Principal: `owner:<owner>` or `key:<id>`. */
    approver: string;
    /** What the approver wrote, as one line of at most 500 characters. */
    reason: string | null;
    /** When. */
    rejected_at: string;
    /** Until when the same request is refused, unless an approver lifts the rejection; null where it can be submitted again. */
    holds_until: string | null;
  } | null;
  risk_level: string | null;
  policy: string | null;
  rule: string | null;
  /** Digest of the policy set that decided. */
  policy_hash: string | null;
  policy_version: number | null;
  /** SHA-256 of the canonical request, hex; null when it was erased. */
  request_hash: string | null;
  /** Leaf hash of the decision's ledger entry, hex. */
  decision_hash: string;
  /** Same as `decision_hash`. */
  provenance_id: string;
  /** Key. */
  submitted_by: string;
  approvals: ({
    /** Principal: `owner:<owner>` or `key:<id>`. */
    approver: string;
    key_id: string;
    approve: boolean;
    reason: string | null;
    self_approval: boolean;
    /** When. */
    created_at: string;
  })[];
  /** Quorum; null where no approval was asked for. */
  approvals_needed: number | null;
  /** Until when it may start; null unless it was allowed or approved. */
  approved_until: string | null;
  /** Signed statement that the action may run, in the answer to a request for one: `POST …/permit`, or `Prefer: permit` with the submission. Null everywhere else. */
  permit: string | null;
  /** End of that permit. */
  permit_expires_at: string | null;
  /** End of the time to approve. */
  expires_at: string | null;
  result: {
    success: boolean;
    error: string | null;
    meta: Record<string, unknown>;
  } | null;
  /** Whether the action's agent waits for the verdict at this moment: with `Prefer: wait` or `?wait`, and the key that submitted or one that is bound to the agent. */
  waiting: boolean;
  /** When it was last asked for: submitted, joined or waited for. */
  asked_at: string;
  /** When `params`, `context`, `meta` and `result` were erased: they are empty then, and the rest stands. */
  erased_at: string | null;
  /** When it was decided. */
  created_at: string;
  /** Last change of status. */
  updated_at: string;
  /** JSON pointers of the members of `params` and `context` that the policy names, in the order in which people see them. Where a pending action is read. */
  shown_first?: string[];
  /** What was decided again, in the answer to the request for a permit that made it. */
  redecision?: {
    effect: "allow" | "deny" | "require_approval";
    reason: string;
    reason_code: string;
    risk_level: string | null;
    policy: string | null;
    rule: string | null;
    policy_version: number | null;
    /** Digest of the policy set of this moment. */
    policy_hash: string | null;
    /** Quorum that the policies of this moment ask for. */
    approvals_needed: number | null;
    /** Which of these members are not as they were decided before. */
    changed: string[];
  };
  /** For a credential that may approve this action, and nobody else. */
  approval_token?: string;
}

export interface ActionList {
  actions: Action[];
  next_cursor: string | null;
}

export interface Submission {
  /** Agent that wants to act. A key bound to an agent may name only that one. */
  agent_id: string;
  /** Tool to be used, e.g. `stripe`. */
  tool: string;
  /** What the tool is to do, e.g. `refund`. */
  operation: string;
  /** Arguments, as the tool will get them. */
  params?: Record<string, unknown> | undefined;
  /** Why and for whom: ticket, user, environment. Policies see it and the request hash covers it. */
  context?: Record<string, unknown> | undefined;
  /** Kept and shown beside the request, up to 4,096 bytes: trace, session, host, tool call. No policy sees it, the request hash does not cover it. */
  meta?: Record<string, unknown> | undefined;
}

export interface Result {
  success: boolean;
  /** What went wrong. */
  error?: string | null | undefined;
  /** Anything worth keeping: ids, amounts, durations. */
  meta?: Record<string, unknown> | undefined;
  /** Of the start that this ends. With it the result of another start is refused, also where this key made that one. */
  attempt?: string | undefined;
}

export interface ListQuery {
  status?: "allowed" | "denied" | "pending_approval" | "approved" | "expired" | "cancelled" | "executing" | "succeeded" | "failed" | undefined;
  agent_id?: string | undefined;
  tool?: string | undefined;
  operation?: string | undefined;
  /** 64 lowercase hex digits, as records have it. */
  request_hash?: string | undefined;
  /** Created at or after. */
  since?: string | undefined;
  /** Created before. */
  until?: string | undefined;
  /** Most items of one page; one whose items are large ends before. */
  limit?: number | undefined;
  /** `next_cursor` of the page before. */
  cursor?: string | undefined;
}

export interface Event {
  /** Ledger sequence; the SSE `id`. */
  seq: number;
  /** Leaf hash, hex. */
  hash: string;
  /** Of the entry; `<plugin>:<type>` where a plugin recorded it. */
  type: string;
  at: string;
  /** The action that it is about; null for changes of keys, agents and policies. */
  action_id: string | null;
  entry: Record<string, unknown>;
}

export interface EventsQuery {
  /** Only events with a greater sequence; -1 for all there ever were. A stream without it begins now. `Last-Event-ID` wins over it. */
  after?: number | undefined;
  /** one or more of decision, approval, redecision, execution, erasure, policy_set, api_key, agent, stop, permit_key, log_key, separated by commas */
  type?: string | undefined;
  agent_id?: string | undefined;
  /** Events of actions with this tool. */
  tool?: string | undefined;
  action_id?: string | undefined;
}
