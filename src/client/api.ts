/**
 * Requests and responses of the API, generated from the OpenAPI document. Do not edit:
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
  /** `meta` of the submission, or `{}`. The service adds the `traceparent` of the request, or of its own trace, if there is one. */
  meta: Record<string, unknown>;
  /** Questions of approvers to the agent, in order. At most 5. The agent answers with POST …/answers. Render the strings like `params`, because they can contain hidden characters. */
  questions: ({
    /** Number of the question within the action, starting at 1. */
    number: number;
    /** Principal of the approver. */
    asked_by: string;
    /** When the question was asked. */
    asked_at: string;
    question: string;
    /** Time at which the question was answered; null until then. */
    answered_at: string | null;
    /** The agent's answer; null until it answers. */
    answer: string | null;
  })[];
  /** The agent's original request if an approver or the policies changed it; otherwise null. The action's own `params` and `request_hash` are then those of the changed request, and only that request can run. */
  proposed: {
    params: Record<string, unknown>;
    request_hash: string;
    /** Principal of the approver; `policies` if obligations of rules changed it. */
    edited_by: string;
    /** When it was changed. */
    edited_at: string;
    reason: string | null;
  } | null;
  status: "allowed" | "denied" | "pending_approval" | "approved" | "expired" | "cancelled" | "executing" | "unknown" | "succeeded" | "failed";
  decision: "allow" | "deny" | "require_approval";
  /** Equivalent of `decision`: EXECUTE for allow, ABSTAIN for require_approval or a request that obligations changed, HALT for deny. Votes do not change it; `status` says whether the action may run now. */
  outcome: "EXECUTE" | "ABSTAIN" | "HALT";
  reason: string;
  /** Stable; see docs/policies.md. */
  reason_code: string;
  /** Who denied the action: the policies, a person, a machine reviewer, an earlier rejection of the same request, or a stop. Null unless `status` is denied. */
  denied_by: "policy" | "person" | "reviewer" | "earlier_rejection" | "stop" | null;
  /** Who rejected it and why, if `denied_by` is person, reviewer or earlier_rejection; else null. */
  rejection: {
    /** The action that was rejected: this one, or an earlier one. */
    action_id: string;
    /** Principal: `user:<id>` or `key:<id>`; `reviewer:<name>` for a machine reviewer. */
    approver: string;
    /** What the approver wrote, as one line of at most 500 characters. */
    reason: string | null;
    /** When the action was rejected. */
    rejected_at: string;
    /** End of the time in which the same request is denied, unless an approver lifts the rejection. Null if it can be submitted again. */
    holds_until: string | null;
  } | null;
  risk_level: string | null;
  policy: string | null;
  rule: string | null;
  /** Digest of the policy set of the decision. */
  policy_hash: string | null;
  policy_version: number | null;
  /** SHA-256 of the canonical request, hex; null if the request was erased or was altered in the store. */
  request_hash: string | null;
  /** Leaf hash of the decision's ledger entry, hex. */
  decision_hash: string;
  /** Same as `decision_hash`. */
  provenance_id: string;
  /** Id of the key that submitted the action. */
  submitted_by: string;
  /** Grant that covered the action when it was decided; else null. */
  grant: string | null;
  /** The plan that contains the action, which people approve as a whole; null if there is none. */
  plan: {
    id: string;
    /** Position in the plan, from 1. */
    position: number;
  } | null;
  approvals: ({
    /** Principal: `user:<id>` or `key:<id>`. */
    approver: string;
    key_id: string;
    approve: boolean;
    reason: string | null;
    self_approval: boolean;
    /** Principal of the user on whose behalf the approver voted, by a delegation. */
    on_behalf_of: string | null;
    /** Whether the approver approved in an emergency without other approvers (break-glass). */
    break_glass: boolean;
    /** Time of the vote. */
    created_at: string;
  })[];
  /** Display names of the people and keys in this record, keyed by principal. They identify no one. Absent if the record mentions none. */
  names?: Record<string, string>;
  reviews?: ({
    reviewer: string;
    version: string | null;
    answer: "approve" | "deny" | "escalate" | null;
    /** Why there is no answer; null if there is one. */
    fault: "timeout" | "error" | "malformed" | "not_configured" | null;
    reason: string | null;
    latency_ms: number;
    /** When the answer was recorded. */
    created_at: string;
  })[];
  /** Quorum; null if no approval was required. */
  approvals_needed: number | null;
  /** Deadline of the start; null unless it was allowed or approved. */
  approved_until: string | null;
  /** Signed statement that the action may run. Only in the response to `POST …/permit`, or to a submission with `Prefer: permit`; else null. */
  permit: string | null;
  /** Expiry of the permit. */
  permit_expires_at: string | null;
  /** Only in the response to a start that a credential issuer covers: the credential for this action. */
  credential?: {
    issuer: string;
    /** When it expires, unless it is revoked earlier. */
    expires_at: string;
    /** The secret with which the tool signs in. Not stored. */
    secret: Record<string, unknown>;
  };
  /** Deadline of the approval. */
  expires_at: string | null;
  result: {
    success: boolean;
    error: string | null;
    meta: Record<string, unknown>;
  } | null;
  /** Whether the action's agent waits now, with `Prefer: wait` or `?wait`: the key that submitted the action, or a key bound to the agent. */
  waiting: boolean;
  /** When the action was last submitted, joined or waited for. */
  asked_at: string;
  /** When `params`, `context`, `meta` and `result` were erased, or null. After an erasure these members are empty; all others are unchanged. */
  erased_at: string | null;
  /** When the action was submitted and decided. */
  created_at: string;
  /** Last change of status. */
  updated_at: string;
  /** What the action does, in the policy's words (`approval.preview`), with quoted and shortened values; null if the rule has no preview. After a vote: what an approver saw, if the key may read actions. */
  preview?: string | null;
  /** For a pending action: JSON pointers of the members of `params` and `context` that the policy names, in display order. */
  shown_first?: string[];
  /** For an approver of a pending action: what is unusual about it, as sentences that are safe to display. Names a tool, operation, recipient or value that the agent did not use before, and an amount above the 99th percentile of earlier ones. At most 8. Compared with at most 300 earlier actions of the agent. Never affects a decision. */
  unusual?: string[];
  /** For an approver of a pending action: what differs from the agent's last action with the same tool and operation; null if there is none among the compared actions. */
  differs_from?: {
    action_id: string;
    /** At most 16. Long values are shortened. */
    members: {
      /** JSON pointer into `{params, context}`. */
      pointer: string;
      /** Null if the earlier action had no such member. */
      before: unknown;
      /** Null if this action has no such member. */
      after: unknown;
    }[];
  } | null;
  /** For an approver of a pending action: up to five votes on the agent's newest earlier actions with the same tool and operation. */
  earlier_votes?: ({
    action_id: string;
    approver: string;
    approve: boolean;
    reason: string | null;
    /** Time of the vote. */
    created_at: string;
  })[];
  /** Number of earlier actions of the agent with which the request was compared: of the newest 300, those that the approver may see. */
  compared_with?: number;
  /** In lists: the stored request, `meta` or result cannot be read, because someone altered the store. These members are empty, and the action's own routes return RECORD_ALTERED. */
  altered?: true;
  /** Result of evaluating the policies again, in the response to the request for a permit. */
  redecision?: {
    effect: "allow" | "deny" | "require_approval";
    reason: string;
    reason_code: string;
    risk_level: string | null;
    policy: string | null;
    rule: string | null;
    policy_version: number | null;
    /** Digest of the active policy set. */
    policy_hash: string | null;
    /** Quorum that the active policies require. */
    approvals_needed: number | null;
    /** Members that differ from the previous decision. */
    changed: string[];
  };
  new_grant?: Record<string, unknown>;
  /** Who can approve the pending action. In responses about one action. */
  approval_terms?: {
    /** maker_checker: someone other than the person behind the agent approves. self_confirm: that person can also confirm with a passkey. */
    mode: "maker_checker" | "self_confirm";
    /** Who must approve, for each rule. The approval satisfies all of them. */
    approvers: ({
      exclude_requester_groups: boolean;
      /** Who may confirm. */
      mode: "maker_checker" | "self_confirm";
      /** Present if each vote must be signed with a passkey. */
      signature?: "passkey";
      stages: ({
        after_ms: number | null;
        approvers: ({
          count: number;
          group: string | null;
        })[];
        /** Channels that are notified when the stage opens. */
        notify?: string[];
      })[];
    })[];
    /** Groups from which another approval would count now. A null item means anyone. */
    open_groups: (string | null)[];
    /** When the first stage opened. */
    since: string;
    /** Parameters that an approver can change now, with POST …/edit. */
    editable: ({
      max?: number;
      max_length?: number;
      min?: number;
      one_of?: (string | number | boolean)[];
      /** Such as `params.amount`. */
      path: string;
    })[];
    /** The largest grant that the rules allow; null if they allow none or the action is part of a plan. */
    grants: {
      /** Maximum number of uses. */
      count: number;
      /** Maximum duration in seconds. */
      for_seconds: number;
    } | null;
    /** Why this credential cannot approve the action now. */
    blocked: {
      code: string;
      detail: string;
      /** Groups from which another approval would count now. A null item means anyone. */
      groups: (string | null)[];
    } | null;
    /** Principal of the user on whose behalf this credential would approve. */
    on_behalf_of: string | null;
    /** Whether this user can approve in an emergency without other approvers (break-glass). */
    may_break_glass: boolean;
  };
  /** Only for a credential that may vote on this action. */
  approval_token?: string;
}

export interface Plan {
  id: string;
  agent_id: string;
  /** Each action can start only when all earlier actions have ended. Default: false. */
  ordered: boolean;
  /** No action can start after another action has failed or has an unknown outcome. The same applies if another action was denied or cancelled or has expired, unless people have since approved the list without it. Default: false. */
  stop_on_failure: boolean;
  /** Digest of the remaining actions, which were not denied or cancelled and have not expired. Each vote contains it. A change of the digest voids earlier votes. */
  digest: string;
  /** The action at which the plan stopped; null if it has not stopped. */
  stopped: {
    /** Position in the plan, from 1. */
    position: number;
    /** Status of that action. */
    status: string;
  } | null;
  /** Id of the key that submitted the plan. */
  submitted_by: string;
  /** When the plan was submitted. */
  created_at: string;
  /** In order. */
  actions: Action[];
  /** Only for a credential that may vote, while an action of the plan is pending. */
  approval_token?: string;
  /** With `approval_token`: whether the vote needs a passkey's signature. */
  signature_required?: boolean;
}

export interface ListedPlan {
  id: string;
  agent_id: string;
  /** Each action can start only when all earlier actions have ended. Default: false. */
  ordered: boolean;
  /** No action can start after another action has failed or has an unknown outcome. The same applies if another action was denied or cancelled or has expired, unless people have since approved the list without it. Default: false. */
  stop_on_failure: boolean;
  /** Id of the key that submitted the plan. */
  submitted_by: string;
  /** When the plan was submitted. */
  created_at: string;
  /** In order. */
  actions: ({
    id: string;
    tool: string;
    operation: string;
    status: "allowed" | "denied" | "pending_approval" | "approved" | "expired" | "cancelled" | "executing" | "unknown" | "succeeded" | "failed";
  })[];
}

export interface ActionList {
  actions: Action[];
  next_cursor: string | null;
}

export interface Submission {
  /** Agent that requests the action. A key that is bound to an agent can name only that agent. */
  agent_id: string;
  /** Tool to use, e.g. `stripe`. */
  tool: string;
  /** Operation of the tool, e.g. `refund`. */
  operation: string;
  /** Arguments of the tool. */
  params?: Record<string, unknown> | undefined;
  /** The reason for the action and whom it is for: ticket, user, environment. Policies can use it, and the request hash covers it. */
  context?: Record<string, unknown> | undefined;
  /** Stored and displayed with the request, up to 4,096 bytes: trace, session, host, tool call. Policies cannot use it, and the request hash does not cover it. */
  meta?: Record<string, unknown> | undefined;
}

export interface Result {
  success: boolean;
  /** What went wrong. */
  error?: string | null | undefined;
  /** Details of the result: ids, amounts, durations. */
  meta?: Record<string, unknown> | undefined;
  /** `attempt` of the start that this result belongs to. The result is rejected if another start, even by the same key, started the action. */
  attempt?: string | undefined;
}

export interface ListQuery {
  status?: "allowed" | "denied" | "pending_approval" | "approved" | "expired" | "cancelled" | "executing" | "unknown" | "succeeded" | "failed" | undefined;
  agent_id?: string | undefined;
  tool?: string | undefined;
  operation?: string | undefined;
  /** `request_hash` of a record: 64 lowercase hex digits. */
  request_hash?: string | undefined;
  /** Actions that this grant covered. */
  grant_id?: string | undefined;
  /** Created at or after. */
  since?: string | undefined;
  /** Created before. */
  until?: string | undefined;
  decision?: "allow" | "deny" | "require_approval" | undefined;
  /** Name of the policy that decided. */
  policy?: string | undefined;
  /** Rule or limit that decided. */
  rule?: string | undefined;
  /** `false` lists actions that no rule and no limit decided; `true` lists the others. */
  has_rule?: boolean | undefined;
  /** Actions that required approval and were answered by people or machine reviewers: `approved`, `rejected`, or `any` of both. */
  answer?: "approved" | "rejected" | "any" | undefined;
  /** Words that each occur in the agent, the tool, the operation, the parameters or the context, in any case; or the first 8 or more characters of an id. One request searches 20,000 actions, including for `decision`, `policy`, `rule`, `has_rule` and `answer`, so a page can have fewer actions than `limit`, and `next_cursor` continues the search. Not with `offset`. */
  q?: string | undefined;
  /** Maximum number of items on a page; a page with large items can have fewer. */
  limit?: number | undefined;
  /** `next_cursor` of the previous page. */
  cursor?: string | undefined;
}

export interface Event {
  /** Sequence number in the ledger, which is also the SSE `id`. */
  seq: number;
  /** Leaf hash, hex. */
  hash: string;
  /** Type of the entry; `<plugin>:<type>` if a plugin recorded it. */
  type: string;
  at: string;
  /** Id of the action that the entry is about; null for other entries, such as changes of keys, users and policies. */
  action_id: string | null;
  entry: Record<string, unknown>;
}

export interface EventsQuery {
  /** Only events with a greater sequence number; -1 for all events. Default: the stream starts with the next event. `Last-Event-ID` takes precedence. */
  after?: number | undefined;
  /** one or more of decision, approval, redecision, question, review, execution, erasure, part_erasure, plan, policy_set, api_key, agent, user, legal_hold, grant, delegation, break_glass, suggested_rule, throttle, permit_key, log_key, actions:credential_issued, actions:credential_ended, stop, coverage:statement, separated by commas */
  type?: string | undefined;
  agent_id?: string | undefined;
  /** Events of actions with this tool. */
  tool?: string | undefined;
  action_id?: string | undefined;
}
