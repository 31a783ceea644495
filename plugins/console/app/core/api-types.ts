/**
 * Requests and responses of the API, generated from the OpenAPI document. Do not edit:
 *
 *   ASSENT_UPDATE=1 node test/run.mjs test/types/console-types.slow.test.ts
 */

export interface Grant {
  id: string;
  /** used_up: no uses are left. blocked: the grantor may no longer vote or grant. */
  status: "active" | "used_up" | "blocked" | "ended";
  agent_id: string;
  tool: string;
  operation: string;
  /** CEL; null covers every request. */
  scope: string | null;
  /** What the scope leaves free: members, such as `params.amount`, and `params.*` or `context.*` if requests may have members that are not in this list. Empty: the grant covers only equal requests. A member counts as fixed only if the scope compares it with a constant by `==`. The names come from the scope, and from the action of the grant or the newest action of the same agent, tool and operation. */
  free: string[];
  /** Maximum number of uses. */
  count: number;
  /** Maximum sum over all uses. */
  sum: {
    /** CEL expression with a number as its value. */
    of: string;
    at_most: number;
  } | null;
  /** Null from one day after `until` on. `GET /v1/actions?grant_id=…` lists the uses. */
  used: {
    /** Uses so far. */
    count: number;
    /** Sum so far; null without `sum`. */
    sum: number | null;
  } | null;
  /** When the grant expires. */
  until: string;
  ends_on_failure: boolean;
  /** Whether the grantor signed it with a passkey, together with a vote. While the grantor has this passkey, the grant can cover the grantor's own agent if the rules have `mode: self_confirm`. */
  signed: boolean;
  /** Principal of the grantor. */
  granted_by: string;
  /** When it was granted. */
  granted_at: string;
  /** The action that was approved together with the grant. */
  granted_with: string | null;
  /** Comment of the grantor. */
  comment: string | null;
  ended: {
    /** rejection: someone rejected an action of the same agent, tool and operation. suspension: someone suspended the agent. */
    cause: "revoked" | "rejection" | "flag" | "failure" | "suspension" | "stop" | "time";
    /** When the grant ended. */
    at: string;
    /** Principal; null if the grant expired. */
    by: string | null;
    /** The action that was rejected or flagged, or that failed. */
    action_id: string | null;
    /** Comment of the person who ended it. */
    comment: string | null;
  } | null;
}

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
  new_grant?: Grant;
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

export interface Actor {
  /** The key's id; a user's id for a session; `link` for a link that was sent to one person. */
  key_id: string;
  /** `user:<id>` of a user in a session, or with a key or link of theirs; `key:<id>` of a key without an owner. */
  principal: string;
  /** Agent that the key is bound to. */
  agent_id: string | null;
  /** Principal of the user who owns the key. */
  owner: string | null;
}

export interface Facts {
  principal: {
    key_id: string;
    name: string;
    agent_id: string | null;
    owner: string | null;
    /** Verified claims of the agent's token. */
    claims?: Record<string, unknown>;
  };
  agent?: {
    suspended: boolean;
    allowed_tools: string[] | null;
  };
  require_registered_agents?: boolean;
  bars?: ({
    code: string;
    id: string;
    policy: string | null;
    reason: string;
  })[];
  key_ended?: true;
  /** Present if obligations can no longer change the request, and some apply. */
  final_request?: true;
  policy_commit?: string;
  suggested?: string[];
  limits?: {
    policy: string;
    limit: string;
    basis: string;
    used: number;
  }[];
  rejection_holds_ms?: number;
  rejection?: {
    action_id: string;
    approver: string;
    /** Display name of the approver. */
    approver_name?: string | null;
    comment: string | null;
    at: string;
    until: string;
  };
  /** The grant that covers the action. */
  grant?: {
    id: string;
    /** Principal of the grantor. */
    by: string;
    /** When it was granted. */
    granted_at: string;
    /** When the grant ends. */
    until: string;
    /** Maximum number of uses. */
    count: number;
    /** CEL over the request; null covers every request. */
    scope: string | null;
    /** Maximum sum over all uses. */
    sum: {
      /** CEL expression with a number as its value. */
      of: string;
      at_most: number;
    } | null;
    /** Groups of the grantor that the rules name. */
    groups: string[];
    /** Whether the grantor is in none of the requester's groups. */
    independent: boolean;
    /** Whether the grantor is the person behind the agent. */
    self: boolean;
  };
  /** Commitment to attributes, past actions, the usage of limits and facts of sources that the decision read. */
  past?: string;
}

export interface Decision {
  /** Decision of the policies. */
  effect: "allow" | "deny" | "require_approval";
  reason: string;
  reason_code: string;
  risk_level: string | null;
  policy: string | null;
  policy_version: number | null;
  rule: string | null;
  approval: {
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
    /** Parameters that an approver can change. Absent if none. */
    editable?: ({
      max?: number;
      max_length?: number;
      min?: number;
      one_of?: (string | number | boolean)[];
      /** Such as `params.amount`. */
      path: string;
    })[];
    /** The largest grants that can cover the action. Absent if none can. */
    grants?: {
      count: number;
      for_ms: number;
    };
    /** Who may confirm. */
    mode: "maker_checker" | "self_confirm";
    quorum: number;
    expires_in_ms: number;
    valid_for_ms?: number;
    rejection_holds_ms?: number;
    /** Machine reviewers to call. Absent if the rules name none. */
    reviewers?: {
      may_approve: boolean;
      name: string;
    }[];
    notify: string[];
  } | null;
  /** What the rules require of parameters. The request that may run satisfies it. Absent if none. */
  obligations?: ({
    max?: number;
    min?: number;
    /** Such as `params.amount`. */
    path: string;
    set?: string | number | boolean;
  })[];
  shadow: ({
    policy: string;
    policy_version: number;
    rule: string | null;
    /** Decision of the policies. */
    effect: "allow" | "deny" | "require_approval";
    reason_code: string;
  })[];
}

export interface DecisionEntry {
  type: "decision";
  /** Version of the entry type. */
  v: 1;
  /** Sequence number: position of the entry's leaf in the ledger. */
  seq: number;
  /** The action. */
  action_id: string;
  /** Time of the entry, by the service's clock, which is also the clock of the decision. */
  at: string;
  /** The agent that wants to act. */
  agent_id: string;
  /** SHA-256(salt ‖ request hash): commits to the request without revealing it. */
  commitment: string;
  /** Commitment to the request as obligations changed it. Later entries commit to it. Absent if not changed. */
  effective?: string;
  /** The tool. */
  tool: string;
  /** Operation of the tool. */
  operation: string;
  submitted_by: Actor;
  /** Digest of the policy set; null before the first set was activated. */
  policy_set: string | null;
  facts: Facts;
  decision: Decision;
  /** Status of the action after this entry. */
  status: "allowed" | "denied" | "pending_approval";
  /** What denied the action; null if it was not denied. */
  denied_by: "policy" | "person" | "reviewer" | "earlier_rejection" | "stop" | null;
  /** Deadline for approval. */
  expires_at: string | null;
  /** Deadline for starting; null if the action cannot start. */
  approved_until: string | null;
  /** Commitment to `meta`; null without `meta`. */
  meta: string | null;
  /** The plan that the action was submitted with; null if none. */
  plan: {
    /** The plan. */
    id: string;
    /** Position in the plan. */
    position: number;
  } | null;
}

export interface ApprovalEntry {
  type: "approval";
  /** Version of the entry type. */
  v: 1;
  /** Sequence number: position of the entry's leaf in the ledger. */
  seq: number;
  /** The action. */
  action_id: string;
  /** Time of the entry, by the service's clock, which is also the clock of the decision. */
  at: string;
  /** The agent that wants to act. */
  agent_id: string;
  /** SHA-256(salt ‖ request hash): commits to the request without revealing it. */
  commitment: string;
  /** A vote, or the event that ended the request or the rejection. */
  verdict: "approve" | "deny" | "expired" | "cancelled" | "rejection_lifted";
  by: Actor | null;
  /** Comment of the actor. */
  comment: string | null;
  /** The person behind the agent confirmed their own action, in the mode self_confirm. */
  self_approval: boolean;
  /** The delegation that the approver used; null if none. */
  delegation: {
    /** The delegation. */
    id: string;
    /** Principal of the user on whose behalf the approver voted. */
    from: string;
  } | null;
  /** The approver approved without a second approver in an emergency (break-glass). */
  break_glass: boolean;
  /** The grant that was created with the vote; null if there is none. */
  grant: {
    /** The grant. */
    id: string;
    /** Maximum number of uses. */
    count: number;
    /** Whether a failed result of a use ends the grant. */
    ends_on_failure: boolean;
    /** Milliseconds from the vote to the end of the grant. */
    for_ms: number;
    /** CEL over the request; null covers every request. */
    scope: string | null;
    /** Maximum sum over all uses. */
    sum: {
      /** CEL expression with a number as its value. */
      of: string;
      at_most: number;
    } | null;
  } | null;
  /** Groups of the approver that the approval names, at the time of the vote. */
  groups: string[];
  /** Whether the approver was in none of the requester's groups; false if the requester's groups are unknown. */
  independent: boolean;
  /** Signature of the vote with a passkey; null if it was not signed. */
  gesture: {
    kind: "passkey";
    /** Id of the passkey, base64url. */
    credential_id: string;
    /** Leaf hash of the entry that made the action pending, as displayed to the approver. */
    decision: string;
    /** Issued by the service for one list of votes. */
    nonce: string;
    /** Salted commitment to the preview of the rule; null if the rule has no preview. */
    preview: string | null;
    /** Digests of all votes that were signed together, in order. */
    votes: string[];
    /** Base64url. */
    authenticator_data: string;
    /** Base64url. */
    client_data_json: string;
    /** Base64url. */
    signature: string;
  } | null;
  /** Salted commitment to the preview that was displayed to the approver; null if there was none or this is not a vote. */
  preview: string | null;
  /** Digest of the questions to the agent and its answers so far; null if there are none or this is not a vote. */
  questions: string | null;
  /** Digest of the actions that remain after the vote on a plan; null unless the vote is part of one. */
  plan: string | null;
  /** Number of people who have approved, including this one. */
  approvals: number;
  /** Number of approvals required. */
  quorum: number;
  /** Status of the action after this entry. */
  status: "pending_approval" | "approved" | "denied" | "expired" | "cancelled";
  /** Deadline for starting, if this entry approves the action; for `expired`, the deadline that has passed, if it was for starting. Null otherwise. */
  approved_until: string | null;
  /** Time until which the rejection denies duplicate requests; null if it does not deny them. */
  rejection_until: string | null;
}

export interface RedecisionEntry {
  type: "redecision";
  /** Version of the entry type. */
  v: 1;
  /** Sequence number: position of the entry's leaf in the ledger. */
  seq: number;
  /** The action. */
  action_id: string;
  /** Time of the entry, by the service's clock, which is also the clock of the decision. */
  at: string;
  /** The agent that wants to act. */
  agent_id: string;
  /** SHA-256(salt ‖ request hash): commits to the request without revealing it. */
  commitment: string;
  /** The request or event that caused the new decision. */
  occasion: "vote" | "start" | "permit" | "review" | "edit";
  by: Actor | null;
  /** Digest of the policy set; null before the first set was activated. */
  policy_set: string | null;
  facts: Facts;
  decision: Decision;
  /** Status of the action after this entry. */
  status: "denied" | "pending_approval" | "allowed" | "approved";
  /** Number of approvals required; null if none is required. */
  quorum: number | null;
  /** Deadline for approval; null if no approval is required. */
  expires_at: string | null;
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
  })[] | null;
  /** An approver's change of the request; null unless this entry records a change. */
  edit: {
    /** Commitment to the request before the change. */
    previous: string;
    /** Reason that was given. */
    comment: string | null;
  } | null;
}

export interface QuestionEntry {
  type: "question";
  /** Version of the entry type. */
  v: 1;
  /** Sequence number: position of the entry's leaf in the ledger. */
  seq: number;
  /** The action. */
  action_id: string;
  /** Time of the entry, by the service's clock, which is also the clock of the decision. */
  at: string;
  /** The agent that wants to act. */
  agent_id: string;
  /** SHA-256(salt ‖ request hash): commits to the request without revealing it. */
  commitment: string;
  /** An approver's question, or the agent's answer. */
  phase: "ask" | "answer";
  /** Number of the question within the action, starting at 1. */
  number: number;
  by: Actor;
  /** Commitment to the text. */
  text: string;
}

export interface ReviewEntry {
  type: "review";
  /** Version of the entry type. */
  v: 1;
  /** Sequence number: position of the entry's leaf in the ledger. */
  seq: number;
  /** The action. */
  action_id: string;
  /** Time of the entry, by the service's clock, which is also the clock of the decision. */
  at: string;
  /** The agent that wants to act. */
  agent_id: string;
  /** SHA-256(salt ‖ request hash): commits to the request without revealing it. */
  commitment: string;
  /** The machine reviewer, as the policies name it. */
  reviewer: string;
  /** Version of the reviewer's model, prompt or rules; null if the reviewer was not called. */
  version: string | null;
  /** `seq` of the entry that made the action pending. */
  asked: number;
  /** SHA-256(salt ‖ SHA-256(request to the reviewer)); null if the reviewer was not called. */
  input: string | null;
  /** The answer; null if the reviewer gave no valid answer in time. */
  answer: "approve" | "deny" | "escalate" | null;
  /** Why there is no answer; null if there is one. */
  fault: "timeout" | "error" | "malformed" | "not_configured" | null;
  /** Reason that the reviewer gave. */
  comment: string | null;
  /** Milliseconds from the call to its answer, fault or timeout. */
  latency_ms: number;
  /** Number of reviewers of the same request that have not answered yet. */
  outstanding: number;
  /** Status of the action after the answer. */
  status: "pending_approval" | "approved" | "denied";
  /** Deadline for starting; null unless this answer approves the action. */
  approved_until: string | null;
  /** Time until which the denial also denies the same request; null if it does not. */
  rejection_until: string | null;
}

export interface ExecutionEntry {
  type: "execution";
  /** Version of the entry type. */
  v: 1;
  /** Sequence number: position of the entry's leaf in the ledger. */
  seq: number;
  /** The action. */
  action_id: string;
  /** Time of the entry, by the service's clock, which is also the clock of the decision. */
  at: string;
  /** The agent that wants to act. */
  agent_id: string;
  /** SHA-256(salt ‖ request hash): commits to the request without revealing it. */
  commitment: string;
  /** The start, the result, or the fact that no result was reported in time. */
  phase: "start" | "no_result" | "result";
  by: Actor | null;
  /** SHA-256 of the permit; null unless this is a start with a permit. */
  permit: string | null;
  /** SHA-256 of the `attempt` that was sent with the start; null unless this is a start with an `attempt`. */
  attempt: string | null;
  /** Whether the action had its effect, as reported; null unless this is a result. */
  success: boolean | null;
  /** Commitment to the reported result; null unless this is a result. */
  result: string | null;
  /** How the person who reported an unknown outcome knows it; null for other entries. */
  comment: string | null;
  /** Status of the action after this entry. */
  status: "executing" | "unknown" | "succeeded" | "failed";
}

export interface ErasureEntry {
  type: "erasure";
  /** Version of the entry type. */
  v: 1;
  /** Sequence number: position of the entry's leaf in the ledger. */
  seq: number;
  /** The action. */
  action_id: string;
  /** Time of the entry, by the service's clock, which is also the clock of the decision. */
  at: string;
  /** The agent that wants to act. */
  agent_id: string;
  /** SHA-256(salt ‖ request hash): commits to the request without revealing it. */
  commitment: string;
  /** asked: someone requested the erasure. subject: a person requested the erasure of their data, which the action contained. retention: the retention period ended. */
  cause: "asked" | "subject" | "retention";
  /** Commitments to the keyed digests by which the service recognizes duplicates of the erased request while its rejection is in force: of the submitted request, and of the changed request if there is one. Absent if no rejection is in force. */
  rejected?: string[];
  /** Reason of the erasure. */
  reason: string;
  by: Actor | null;
}

export interface PartErasureEntry {
  type: "part_erasure";
  /** Version of the entry type. */
  v: 1;
  /** Sequence number: position of the entry's leaf in the ledger. */
  seq: number;
  /** The action. */
  action_id: string;
  /** Time of the entry, by the service's clock, which is also the clock of the decision. */
  at: string;
  /** The agent that wants to act. */
  agent_id: string;
  /** SHA-256(salt ‖ request hash): commits to the request without revealing it. */
  commitment: string;
  /** What was erased. */
  part: "result" | "meta" | "questions";
  /** Reason of the erasure. */
  reason: string;
  /** Always null, because only the end of a retention period erases parts. */
  by: null;
}

export interface PlanEntry {
  type: "plan";
  /** Version of the entry type. */
  v: 1;
  /** Sequence number: position of the entry's leaf in the ledger. */
  seq: number;
  /** Time of the entry. */
  at: string;
  /** Agent of all the actions. */
  agent_id: string;
  /** The actions in order. Their decisions follow this entry. */
  plan: {
    id: string;
    /** Each action can start only when all earlier actions have ended. */
    ordered: boolean;
    /** No action can start after another action has failed. */
    stop_on_failure: boolean;
    actions: {
      /** The action. */
      action_id: string;
      /** Commitment in the decision of the action. */
      commitment: string;
    }[];
  };
  by: Actor;
}

export interface PolicySetEntry {
  type: "policy_set";
  /** Version of the entry type. */
  v: 1;
  /** Sequence number: position of the entry's leaf in the ledger. */
  seq: number;
  /** Time of the entry. */
  at: string;
  /** Digest of the policy set; null before the first set was activated. */
  previous: string | null;
  /** Digest of the policy set; null before the first set was activated. */
  policy_set: string | null;
  /** Number of policies in the set. */
  policy_count: number;
  /** Null if the set has more than 200 policies. The digest covers all policies. */
  policies: {
    policy: string;
    version: number;
  }[] | null;
  /** Origin of the set. */
  source: Record<string, string>;
  /** The policies after the change. */
  changes: ({
    id: string;
    name: string;
    managed_by: string | null;
    version: number;
    /** Digest of that version's definition. */
    digest: string | null;
    active: number | null;
    deleted: boolean;
  })[];
  by: Actor | null;
}

export interface KeyEntry {
  type: "api_key";
  /** Version of the entry type. */
  v: 1;
  /** Sequence number: position of the entry's leaf in the ledger. */
  seq: number;
  /** Time of the entry. */
  at: string;
  /** The change. */
  change: "created" | "revoked";
  /** The key after the change, with the hash of its value. */
  key: {
    id: string;
    name: string;
    hash: string;
    scopes: string[];
    agent_id: string | null;
    owner: string | null;
    expires_at: string | null;
  };
  by: Actor | null;
}

export interface AgentEntry {
  type: "agent";
  /** Version of the entry type. */
  v: 1;
  /** Sequence number: position of the entry's leaf in the ledger. */
  seq: number;
  /** Time of the entry. */
  at: string;
  /** The change. */
  change: "registered" | "updated" | "suspended" | "resumed";
  /** The agent after the change. */
  agent: Record<string, unknown>;
  by: Actor | null;
}

export interface UserEntry {
  type: "user";
  /** Version of the entry type. */
  v: 1;
  /** Sequence number: position of the entry's leaf in the ledger. */
  seq: number;
  /** Time of the entry. */
  at: string;
  /** The change. */
  change: "created" | "updated" | "link_created" | "passkey_added" | "passkey_removed" | "recovery_codes_created" | "ended" | "resumed";
  /** The user after the change. */
  user: {
    id: string;
    /** Display name. It does not identify the user. */
    name: string;
    roles: string[];
    groups: string[];
    /** Accounts at identity providers. */
    identities: {
      issuer: string;
      subject: string;
    }[];
    passkeys: {
      /** Credential id, base64url. */
      id: string;
      /** COSE key, base64url. */
      public_key: string;
      /** Origin of the page on which it was created. Its host name is the relying party id. */
      origin: string;
      name: string;
      /** When it was added. */
      added_at: string;
    }[];
    /** The open one-time link that adds a passkey. */
    link: {
      /** SHA-256 of the token. */
      hash: string;
      /** When the link expires. */
      expires_at: string;
    } | null;
    recovery_codes: string[];
    /** Names of the provider's groups to which a SCIM client added the user. */
    provider_groups: string[];
    /** Digest of the e-mail address that the provider has verified. */
    email: string | null;
    /** `oidc:<provider>` or `scim:<provider>`; null if this service manages the user. */
    managed_by: string | null;
    /** When the user was created. */
    created_at: string;
    /** When the user was deactivated. */
    ended_at: string | null;
  };
  /** Comment of the actor. */
  reason: string | null;
  /** Credential id of the passkey with which the user confirmed a change of their own ways to sign in. */
  confirmed_by: string | null;
  by: Actor | null;
}

export interface LegalHoldEntry {
  type: "legal_hold";
  /** Version of the entry type. */
  v: 1;
  /** Sequence number: position of the entry's leaf in the ledger. */
  seq: number;
  /** Time of the entry. */
  at: string;
  /** The change. */
  change: "placed" | "release_asked" | "released";
  /** The hold as it was when it was placed. */
  hold: {
    id: string;
    /** Id of the action that the hold covers. */
    action: string | null;
    /** The agent whose actions the hold covers. */
    agent: string | null;
    /** Salted commitment to the identifier of the person whose actions the hold covers. */
    subject: string | null;
    reason: string;
  };
  /** Why the hold can be released. */
  comment: string | null;
  /** Number of people who have requested to release the hold. */
  approvals: number;
  /** Number of people who must request to release the hold. */
  needed: number;
  by: Actor;
}

export interface GrantEntry {
  type: "grant";
  /** Version of the entry type. */
  v: 1;
  /** Sequence number: position of the entry's leaf in the ledger. */
  seq: number;
  /** Time of the entry. */
  at: string;
  /** The change. */
  change: "granted" | "ended";
  /** The agent that can use the grant. */
  agent_id: string;
  /** The grant as it was when it was created. */
  grant: {
    id: string;
    tool: string;
    operation: string;
    /** CEL over the request; null covers every request. */
    scope: string | null;
    /** Maximum number of uses. */
    count: number;
    /** Maximum sum over all uses. */
    sum: {
      /** CEL expression with a number as its value. */
      of: string;
      at_most: number;
    } | null;
    /** When the grant ends. */
    until: string;
    /** Whether a failed result of a use ends the grant. */
    ends_on_failure: boolean;
    /** Credential id of the passkey that signed the vote with the grant. */
    passkey: string | null;
  };
  /** Why the grant ended; null when it is created. */
  cause: "revoked" | "rejection" | "flag" | "failure" | "suspension" | null;
  /** The action that the grant was created with, that was rejected or flagged, or that failed. */
  related_action: string | null;
  /** Comment of the grantor, or of the person who ended the grant. */
  comment: string | null;
  by: Actor;
}

export interface DelegationEntry {
  type: "delegation";
  /** Version of the entry type. */
  v: 1;
  /** Sequence number: position of the entry's leaf in the ledger. */
  seq: number;
  /** Time of the entry. */
  at: string;
  /** The change. */
  change: "created" | "ended";
  /** The delegation as it was when it was created. A null member means no restriction. */
  delegation: {
    id: string;
    /** Id of the user on whose behalf the other user approves. */
    from: string;
    /** Id of the user who approves. */
    to: string;
    /** Groups and rotas for which the delegate's votes count. */
    groups: string[] | null;
    /** Globs of the agents that the delegation covers. */
    agents: string[] | null;
    /** Globs of the tools that the delegation covers. */
    tools: string[] | null;
    /** When it starts. */
    starts_at: string;
    /** When it expires. */
    until: string;
  };
  /** Why the delegation ended; null when it was created. */
  cause: "revoked" | "user_ended" | null;
  /** Comment of the delegator, or of the credential that ended the delegation. */
  comment: string | null;
  by: Actor;
}

export interface BreakGlassEntry {
  type: "break_glass";
  /** Version of the entry type. */
  v: 1;
  /** Sequence number: position of the entry's leaf in the ledger. */
  seq: number;
  /** Time of the entry. */
  at: string;
  /** The change. */
  change: "used" | "reviewed";
  /** Agent of the action. */
  agent_id: string;
  /** The break-glass approval. */
  use: {
    id: string;
    tool: string;
    operation: string;
  };
  /** The action that was approved. */
  related_action: string;
  /** Why the action could not wait, or the result of the review. */
  comment: string;
  by: Actor;
}

export interface SuggestedRuleEntry {
  type: "suggested_rule";
  /** Version of the entry type. */
  v: 1;
  /** Sequence number: position of the entry's leaf in the ledger. */
  seq: number;
  /** Time of the entry. */
  at: string;
  /** The change. */
  change: "activated" | "deactivated" | "reverted" | "restored";
  /** The rule as it was when it was activated. */
  rule: {
    /** Name of the rule's policy, which identifies the rule. */
    policy: string;
    /** The rule that requires approval. */
    in_place_of: {
      policy: string;
      rule: string;
    };
    tool: string;
    operation: string;
    agents: string[];
    /** Maximum share of failed results. */
    max_failed: number;
  };
  /** Why the rule was reverted; null otherwise. */
  cause: "flag" | "stop" | "failure" | null;
  /** The action that was flagged or that failed. */
  related_action: string | null;
  /** The stop that reverted the rule. */
  related_stop: string | null;
  /** Comment of the person who flagged a use or restored the rule. */
  comment: string | null;
  by: Actor | null;
}

export interface ThrottleEntry {
  type: "throttle";
  /** Version of the entry type. */
  v: 1;
  /** Sequence number: position of the entry's leaf in the ledger. */
  seq: number;
  /** Time of the entry. */
  at: string;
  /** The agent of the last request. */
  agent_id: string;
  /** The action of the last request. */
  related_action: string;
  /** Number of requests for approval in this hour. */
  requests: number;
  /** Number of requests for approval in the previous seven days. */
  usual: {
    /** Number of requests. */
    requests: number;
    /** Number of hours in which they were made. */
    hours: number;
  };
  /** Factor by which the requests must exceed the usual number. */
  times: number;
  /** Number of requests per hour that is never throttled. */
  minimum: number;
  /** End of the hour. */
  until: string;
  submitted_by: Actor;
}

export interface PermitKeyEntry {
  type: "permit_key";
  /** Version of the entry type. */
  v: 1;
  /** Sequence number: position of the entry's leaf in the ledger. */
  seq: number;
  /** Time of the entry. */
  at: string;
  /** The new key: Ed25519, 32 bytes. */
  public_key: string;
  /** The previous key. */
  previous: string;
  /** Time until which permits of the previous key are accepted. */
  previous_until: string;
  /** Null: only an operator on the host can rotate the key. */
  by: null;
}

export interface LogKeyEntry {
  type: "log_key";
  /** Version of the entry type. */
  v: 1;
  /** Sequence number: position of the entry's leaf in the ledger. */
  seq: number;
  /** Time of the entry. */
  at: string;
  /** The new key, as C2SP vkey. */
  vkey: string;
  /** The previous key. */
  previous: string;
  /** Time until which the previous key signs in addition to the new key. */
  previous_until: string;
  /** A checkpoint before the entry with the line `log-key <previous> <vkey>`, signed by both keys. */
  handover: string;
  /** Null: only an operator on the host can rotate the key. */
  by: null;
}

export interface StopEntry {
  type: "stop";
  /** Version of the entry type. */
  v: 1;
  /** Sequence number: position of the entry's leaf in the ledger. */
  seq: number;
  /** Time of the entry. */
  at: string;
  /** The change. */
  change: "placed" | "lift_asked" | "lifted";
  /** The stop as it was when it was placed. */
  stop: {
    id: string;
    /** Glob of the agents; null covers all. */
    agent: string | null;
    /** Glob of the tools; null covers all. */
    tool: string | null;
    /** Policy whose answers are stopped; null stops all. */
    policy: string | null;
    reason: string;
    /** When the stop expires; null if it never expires. */
    until: string | null;
  };
  /** Comment of the person who lifts the stop. */
  comment: string | null;
  /** Number of people who have requested to lift the stop; 0 when it is placed. */
  approvals: number;
  /** Number of people who must request to lift the stop. */
  needed: number;
  by: Actor;
}

export interface PluginEntry {
  /** `<plugin>:<type>` */
  type: string;
  v: number;
  seq: number;
  /** Time of the entry. */
  at: string;
  action_id: string | null;
  agent_id: string | null;
  /** Data of the entry, in the schema that the plugin declares. */
  data: Record<string, unknown>;
  by: Actor | null;
}

export interface Agent {
  id: string;
  name: string;
  description: string | null;
  allowed_tools: string[] | null;
  metadata: Record<string, unknown>;
  status: "active" | "suspended";
  suspended_at: string | null;
  suspended_reason: string | null;
  /** Increases with every change; also the `ETag`. */
  version: number;
  /** Id of the key or user that registered the agent. */
  created_by: string | null;
  created_at: string;
  updated_at: string;
}

export interface Analytics {
  since: string;
  until: string;
  interval: string;
  time_zone: string;
  total: number;
  by_status: {
    allowed: number;
    denied: number;
    pending_approval: number;
    approved: number;
    expired: number;
    cancelled: number;
    executing: number;
    unknown: number;
    succeeded: number;
    failed: number;
  };
  by_decision: {
    allow: number;
    deny: number;
    require_approval: number;
  };
  /** The 100 most frequent. */
  by_tool: {
    tool: string;
    count: number;
  }[];
  /** The 100 most frequent. */
  by_agent: {
    agent_id: string;
    count: number;
  }[];
  /** The 100 most frequent. A null name means that no policy decided. */
  by_rule: ({
    policy: string | null;
    rule: string | null;
    count: number;
  })[];
  /** Number of actions of the items that are not listed. */
  others: {
    tools: number;
    agents: number;
    rules: number;
  };
  /** Answers to actions that required approval, and the time from the submission to the answer. Expired and cancelled actions are left out. */
  approvals: {
    /** Actions that approvers or machine reviewers settled. */
    decided: number;
    /** Those that were approved. */
    approved: number;
    /** Those that were rejected. */
    rejected: number;
    /** Median time. */
    p50_ms: number | null;
    /** 95th percentile of the time. */
    p95_ms: number | null;
  };
  /** One item for each interval, including empty ones. The first and the last interval are cut to the range. */
  series: {
    start: string;
    end: string;
    total: number;
    by_status: {
      allowed: number;
      denied: number;
      pending_approval: number;
      approved: number;
      expired: number;
      cancelled: number;
      executing: number;
      unknown: number;
      succeeded: number;
      failed: number;
    };
    by_decision: {
      allow: number;
      deny: number;
      require_approval: number;
    };
  }[];
}

export interface Oversight {
  since: string;
  until: string;
  /** Requests that required approval, by the rule that decided. Most requests first. */
  rules: ({
    /** Null if no policy decided. */
    policy: string | null;
    /** Null if no rule decided. */
    rule: string | null;
    requests: number;
    /** Requests that required approval, on average per day. */
    requests_per_day: number;
  })[];
  /** Votes in the range, by approver and by the rule that decided. Most votes first. */
  approvers: ({
    /** Principal: `user:<id>` or `key:<id>`. */
    approver: string;
    /** Null if no policy decided. */
    policy: string | null;
    /** Null if no rule decided. */
    rule: string | null;
    votes: number;
    approvals: number;
    /** Average of the range. */
    votes_per_day: number;
    /** Share of approvals among the votes. */
    approval_rate: number;
    /** Median time from submission to vote. */
    median_ms: number;
    /** Share of votes within three seconds of the submission. */
    fast_rate: number;
  })[];
}

export interface ApiKey {
  id: string;
  name: string;
  /** First characters of the value. */
  prefix: string;
  scopes: string[];
  agent_id: string | null;
  owner: string | null;
  created_by: string | null;
  created_at: string;
  expires_at: string | null;
  revoked_at: string | null;
  /** Accurate to two minutes; null if the key was never used. */
  last_used_at: string | null;
}

export interface LinkedAction {
  id: string;
  agent_id: string;
  tool: string;
  operation: string;
  params: Record<string, unknown>;
  context: Record<string, unknown>;
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
  reason: string;
  risk_level: string | null;
  policy: string | null;
  rule: string | null;
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
  /** SHA-256 of the canonical request, hex; null if the request was erased or was altered in the store. */
  request_hash: string | null;
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
  /** Quorum; null if no approval was required. */
  approvals_needed: number | null;
  /** Deadline of the approval. */
  expires_at: string | null;
  /** When the action was submitted and decided. */
  created_at: string;
}

export interface LinkAnswer {
  /** Digest of the request, its preview and the questions to the agent, which the vote must contain; null unless the action is pending. */
  shown: string | null;
  /** Principal that the link was sent to: `user:<id>`. */
  approver: string;
  /** Display names of the principals in this response, keyed by principal. */
  names: Record<string, string>;
  /** Why this approver cannot vote, apart from earlier votes; null if they may. */
  refusal: string | null;
  /** Whether the rule accepts only votes that are signed with a passkey, so that no link can vote. */
  signature_required: boolean;
  /** The largest grant that the rules allow with an approval; null if none, if the action is part of a plan, or unless it is pending. A link cannot grant. */
  grants: {
    /** Maximum number of uses. */
    count: number;
    /** Maximum duration in seconds. */
    for_seconds: number;
  } | null;
  action: LinkedAction;
}

export interface BreakGlassApproval {
  id: string;
  status: "open" | "reviewed";
  action_id: string;
  agent_id: string;
  tool: string;
  operation: string;
  /** Principal of the person who approved without other approvers. */
  approver: string;
  /** Why it could not wait. */
  reason: string;
  /** Time of the approval. */
  used_at: string;
  review: {
    /** Principal. */
    reviewer: string;
    comment: string;
    /** Time of the review. */
    reviewed_at: string;
  } | null;
}

export interface CoverageStatement {
  /** Name of the source. */
  source: string;
  /** Published format of its log. */
  format: string;
  /** Start of the window, inclusive. */
  from: string;
  /** End of the window, exclusive. */
  to: string;
  tolerance_seconds: number;
  /** The operations whose effects were compared. */
  operations: {
    tool: string;
    operation: string;
  }[];
  /** Patterns of the identities whose effects were compared; null for all. */
  actors: string[] | null;
  /** The log files that were read. */
  files: {
    name: string;
    sha256: string;
    bytes: number;
    /** Number of all records in the file. */
    records: number;
  }[];
  /** What the source does not record. */
  cannot_see: string[];
  effects: {
    /** Effects in the window: matched, unmatched and unknown. */
    total: number;
    /** Number of effects with an action's id, operation, parameters and time. */
    matched: number;
    /** Number of effects that no action explains. */
    unmatched: number;
    /** Number of effects that could be paired only by a guess. */
    unknown: number;
  };
  actions: {
    /** Actions that reported success in the window: matched, missing and unknown. */
    total: number;
    /** Number of actions that have an effect with their id, operation, parameters and time. */
    matched: number;
    /** Number of actions that reported success but have no matching effect. */
    missing: number;
    /** Number of actions that could be paired only by a guess, or whose parameters were erased. */
    unknown: number;
  };
  skipped: {
    /** Number of repeated events in the files. */
    duplicates: number;
    /** Number of events outside the window. */
    outside: number;
    /** Number of events of kinds that no mapping names. */
    unmapped: number;
    /** Number of records without an effect, such as failed calls. */
    no_effect: number;
    /** Number of events of other identities. */
    other_actors: number;
  };
  /** The first 50 effects that no action explains. */
  unmatched: ({
    id: string;
    /** Time in the source. */
    at: string;
    event: string;
    actor: string;
    action_id: string | null;
    reason: "unknown_action" | "other_operation" | "parameters_differ" | "outside_action" | "already_matched" | "erased" | "not_read" | "no_action";
  })[];
  /** The first 50 actions that report a success without an effect. */
  missing: {
    id: string;
    /** Time of the result. */
    at: string;
  }[];
  /** Sequence number of the ledger entry that records the statement. */
  seq: number;
  /** Leaf hash of the entry. */
  hash: string;
  at: string;
  /** Principal that ran the comparison. */
  by: string;
}

export interface Execution {
  /** Sequence number of the ledger entry. */
  seq: number;
  action_id: string;
  phase: "start" | "no_result" | "result";
  at: string;
  /** As reported; null unless it is a result. */
  success: boolean | null;
  tool: string;
  operation: string;
  /** The parameters that ran; null if they were erased. */
  params: Record<string, unknown> | null;
}

export interface Delegation {
  id: string;
  status: "scheduled" | "active" | "ended";
  from: {
    id: string;
    name: string;
  };
  to: {
    id: string;
    name: string;
  };
  groups: string[] | null;
  agents: string[] | null;
  tools: string[] | null;
  /** Start of the delegation. */
  starts_at: string;
  /** End of the delegation. */
  until: string;
  comment: string | null;
  /** When it was created. */
  created_at: string;
  /** The recorded end. Null if none was recorded, even if the delegation has expired. */
  ended: {
    cause: "revoked" | "user_ended";
    /** When it ended. */
    at: string;
    /** Principal. */
    by: string;
    comment: string | null;
  } | null;
}

export interface Delivery {
  /** Id of the message. It is the same for every attempt, so that receivers can detect duplicates. */
  id: string;
  /** approval_requested, approval_escalated, approval_reminder, approval_closed, outcome_unknown, break_glass, agent_throttled, event, or the name of a notice of a feature, such as stop. */
  kind: string;
  /** scheduled: created for a later time. waiting: will be attempted at next_attempt_at. dead: failed permanently, can be retried. obsolete: no longer needed. */
  state: "scheduled" | "waiting" | "delivered" | "dead" | "obsolete";
  /** Notifier and recipient. Messages to one destination are delivered one at a time. */
  destination: string;
  /** Empty if a policy names a channel that is not configured. */
  notifier: string;
  recipient: string;
  /** Channel of a policy; null for feeds. */
  channel: string | null;
  /** Owner for whom the message contains a personal link; null if the recipient is not one person. */
  person: string | null;
  action_id: string | null;
  /** Sequence number of the ledger entry that caused the delivery. */
  seq: number;
  attempts: number;
  next_attempt_at: string | null;
  give_up_at: string;
  /** Why the delivery failed, or why its destination failed while it waits; null after delivery. */
  last_error: string | null;
  delivered_at: string | null;
  created_at: string;
  updated_at: string;
}

export interface User {
  id: string;
  name: string;
  /** Principal of the user in records: `user:<id>`. */
  principal: string;
  roles: string[];
  groups: string[];
  identities: {
    issuer: string;
    subject: string;
  }[];
  passkeys: {
    id: string;
    name: string;
    added_at: string;
  }[];
  /** Unused recovery codes. */
  recovery_codes: number;
  /** Expiry of the open enrolment link. */
  link_expires_at: string | null;
  managed_by: string | null;
  ended_at: string | null;
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

export interface Position {
  type: "position";
  /** Newest sequence number that the stream has passed, including filtered entries; -1 if there is none. */
  seq: number;
}

export interface EventPage {
  events: Event[];
  /** Value of `after` for the next poll. */
  next_after: number;
  /** Sequence number of the newest event; -1 if there is none. The poll has caught up when `next_after` equals it. */
  head: number;
}

export interface LegalHold {
  id: string;
  status: "active" | "released";
  scope: "action" | "agent" | "subject";
  /** The action that is kept. */
  action: string | null;
  /** The agent whose actions are kept. */
  agent: string | null;
  /** The person's identifier, for keys with `holds:write`; null once the hold is released. */
  subject: string | null;
  reason: string;
  /** When it was placed. */
  placed_at: string;
  /** Principal of the user or key that placed the hold. */
  placed_by: string;
  release: {
    /** Number of people who must request to release the hold. */
    needed: number;
    /** People who requested the release, in order. */
    asked: {
      /** Principal. */
      by: string;
      /** Time of the request. */
      at: string;
      reason: string;
    }[];
  };
  /** When it was released. */
  released_at: string | null;
  /** Sequence number of the ledger entry that placed the hold. */
  seq: number;
}

export interface Me {
  /** Principal of the caller in records: `user:<id>`, or `key:<id>` of a key without an owner. */
  principal: string;
  /** All scopes of this key, with presets and `admin` expanded. */
  scopes: string[];
  key: {
    id: string;
    name: string;
    owner: string | null;
    agent_id: string | null;
    expires_at: string | null;
  };
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

export interface PlanSummary {
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

export interface PolicyDefinition {
  /** Name: lowercase letters, digits, dots, dashes and underscores, at most 64. */
  policy: string;
  /** For readers. */
  description?: string;
  /** shadow: evaluated and recorded, but never enforced. Default: enforce. */
  mode?: "enforce" | "shadow";
  /** true: tools, operations and agents are matched case-sensitively. Default: false. */
  case_sensitive?: boolean;
  /** Actions that the policy applies to, by tool and agent; both must match. */
  applies_to?: {
    /** Tools that the policy applies to. Default: all. */
    tools?: string[];
    /** Agents that the policy applies to. Default: all. */
    agents?: string[];
  };
  /** Parameters of tools, for the check of conditions. They do not affect decisions. */
  tools?: {
    /** Name of the tool, without globs. */
    tool: string;
    /** Name of the operation. Default: every operation. */
    operation?: string;
    /** JSON Schema of the parameters. */
    params: Record<string, unknown>;
  }[];
  /** Values that conditions read by name: constants, lists and maps; or an expression, such as { cel: params.net * 1.19 }. */
  let?: Record<string, unknown>;
  /** Names of the shared data that conditions read, such as [limits] for data.limits.small. A JSON policy can contain the values instead. */
  data?: string[] | Record<string, unknown>;
  /** Present if the policy was suggested from approvals. Its only rule allows actions for which no other rule than in_place_of requires approval, until it is reverted. */
  suggested?: {
    /** The rule that requires approval. */
    in_place_of: {
      /** Name of its policy. */
      policy: string;
      /** Name of the rule. */
      rule: string;
    };
    /** Reverts the rule if a larger share of its newest 50 results failed. Default: 0.1. */
    max_failed?: number;
  };
  /** The past actions that conditions read as history. */
  history?: {
    /** Owner of the past actions: agent, key, session, or a CEL expression such as params.account, for the actions with the same value. */
    per: string;
    /** Tool of the past actions. Default: every tool; one glob or a list. */
    tool?: string | string[];
    /** Operation of the past actions. Default: every operation; one glob or a list. */
    operation?: string | string[];
    /** true: includes actions that were denied when they were submitted. Default: false. */
    include_denied?: boolean;
    /** Window of the past actions, such as 1h, 24h or 7d, or the current calendar hour, day, week or month. */
    window: string;
    /** Time zone of a calendar window, such as Europe/Berlin. Default: UTC. */
    time_zone?: string;
    /** Maximum number of past actions. If there are more, conditions that read the history fail. */
    max: number;
  };
  /** Values that conditions read as facts.NAME, from fact sources. */
  facts?: Record<string, unknown>;
  /** Types of attributes, for the check of conditions. They do not affect decisions. */
  attributes?: {
    /** JSON Schema of principal.claims. */
    claims?: Record<string, unknown>;
    /** JSON Schema of agent_metadata. */
    agent_metadata?: Record<string, unknown>;
  };
  /** Rules in order: the first match decides. Can be empty only if the policy has limits. */
  rules: ({
    /** Name of the rule, unique within the policy. Recorded with every decision that the rule makes. */
    name: string;
    /** For readers. */
    description?: string;
    /** Tool that the rule applies to. Default: every tool; one glob or a list. */
    tool?: string | string[];
    /** Operation that the rule applies to. Default: every operation; one glob or a list. */
    operation?: string | string[];
    /** Agent that the rule applies to. Default: every agent; one glob or a list. */
    agent?: string | string[];
    /** Condition in CEL over agent, tool, operation, params, context, principal and now. */
    when?: string;
    /** Decision if the rule matches. */
    effect: "allow" | "deny" | "require_approval";
    /** Displayed to approvers. Does not affect the decision. */
    risk?: "low" | "medium" | "high" | "critical";
    /** Displayed to the agent and to approvers, and recorded. */
    reason?: string;
    /** Terms of the approval; only with require_approval. */
    approval?: {
      /** maker_checker: someone other than the person behind the agent must approve. self_confirm: that person can also confirm with a passkey. Default: maker_checker. */
      mode?: "maker_checker" | "self_confirm";
      /** passkey: each vote must be signed with a passkey, in the session of a user. */
      signature?: "passkey";
      /** The required approvers. Each vote satisfies only one item, even if the approver is in several groups. */
      approvers?: {
        /** Group from the configuration or the sign-in. Default: people of any group or none. */
        group?: string;
        /** Number of different people. Default: 1. */
        count?: number;
      }[];
      /** Stages that must be satisfied in order, instead of approvers. */
      stages?: {
        /** Opens this stage as an alternative if the previous stage is not satisfied within this time, such as 30m. Default: opens when the previous stage is satisfied. */
        after?: string;
        /** The required approvers. Each vote satisfies only one item, even if the approver is in several groups. */
        approvers: {
          /** Group from the configuration or the sign-in. Default: people of any group or none. */
          group?: string;
          /** Number of different people. Default: 1. */
          count?: number;
        }[];
        /** Channels to notify when the stage opens. */
        notify?: string[];
      }[];
      /** true: members of the requester's groups cannot approve. Default: false. */
      exclude_requester_groups?: boolean;
      /** Number of different people who must approve. Default: 1. */
      quorum?: number;
      /** Time in which the request can be approved, such as 30m, 1h or 7d. Default: 24h. */
      expires_in?: string;
      /** Time in which an approved action can start, such as 15m, 1h or 7d. Default: 1h. */
      valid_for?: string;
      /** Time for which a rejection denies the same request of the same agent, such as 1h or 7d; none or 0s disables this. Default: the service's setting (24h). */
      rejection_holds?: string;
      /** Allows approvers to grant later actions, up to these caps. Default: no grants. */
      grants?: {
        /** Maximum time from a grant to its end, such as 8h. */
        for: string;
        /** Maximum number of uses of a grant. */
        count: number;
      };
      /** Machine reviewers that see the request as approvers do. */
      reviewers?: {
        /** Name of a configured reviewer. */
        name: string;
        /** true: the reviewer's approval replaces the approval of a person. Default: the reviewer can only deny or escalate. */
        may_approve?: boolean;
      }[];
      /** Parameters that an approver can change before another person approves, such as params.amount: a list, or a map with bounds. Default: none. */
      editable?: string[] | Record<string, unknown>;
      /** Channels to notify. */
      notify?: string[];
      /** Sentence that tells approvers what the action does, such as Refund {params.amount} to {params.customer}. Values are quoted and shortened. Default: tool, operation and the first parameter. */
      preview?: string;
      /** Members that approvers see first, such as params.amount or context.ticket. */
      show?: string[];
    };
    /** Changes to parameters. set and clamp change values: the changed request is evaluated again, and only that request can run. redact hides values from people. */
    obligations?: {
      /** Parameters whose values people do not see, such as [params.card.number]: in all actions that tool, operation and agent match, whatever the decision is. */
      redact?: string[];
      /** Values that replace those of the request, by parameter, such as { params.currency: EUR }. */
      set?: Record<string, unknown>;
      /** Bounds to which numbers of the request are moved, by parameter, such as { params.amount: { max: 500 } }. */
      clamp?: Record<string, unknown>;
    };
  })[];
  /** Every limit is evaluated in addition to the rules; the strictest effect wins. */
  limits?: ({
    /** Name of the limit, unique among the rules and limits of the policy. Recorded as the rule of the decisions that it makes. */
    name: string;
    /** For readers. */
    description?: string;
    /** Tool whose actions count. Default: every tool; one glob or a list. */
    tool?: string | string[];
    /** Operation that counts. Default: every operation; one glob or a list. */
    operation?: string | string[];
    /** Agent whose actions count. Default: every agent; one glob or a list. */
    agent?: string | string[];
    /** Condition in CEL. Actions for which it is false do not count. */
    when?: string;
    /** Counts actions separately for each agent, key, or value of a CEL expression such as params.customer. Default: one count for all actions. */
    per?: string;
    /** Maximum number of actions. */
    count?: number;
    /** Number to add up, in CEL, such as params.amount. From 0 to 1,000,000,000; rounded up to millionths. */
    sum?: string;
    /** Maximum sum. */
    at_most?: number;
    /** Sliding window, such as 1h, 24h or 7d, or the current calendar hour, day, week or month. */
    window: string;
    /** Time zone of a calendar window, such as Europe/Berlin. Default: UTC. */
    time_zone?: string;
    /** Decision on an action that exceeds the limit. Default: deny. */
    effect?: "deny" | "require_approval";
    /** Displayed to approvers. Does not affect the decision. */
    risk?: "low" | "medium" | "high" | "critical";
    /** Displayed to the agent and to approvers, and recorded. */
    reason?: string;
    /** Terms of the approval; only with require_approval. */
    approval?: {
      /** maker_checker: someone other than the person behind the agent must approve. self_confirm: that person can also confirm with a passkey. Default: maker_checker. */
      mode?: "maker_checker" | "self_confirm";
      /** passkey: each vote must be signed with a passkey, in the session of a user. */
      signature?: "passkey";
      /** The required approvers. Each vote satisfies only one item, even if the approver is in several groups. */
      approvers?: {
        /** Group from the configuration or the sign-in. Default: people of any group or none. */
        group?: string;
        /** Number of different people. Default: 1. */
        count?: number;
      }[];
      /** Stages that must be satisfied in order, instead of approvers. */
      stages?: {
        /** Opens this stage as an alternative if the previous stage is not satisfied within this time, such as 30m. Default: opens when the previous stage is satisfied. */
        after?: string;
        /** The required approvers. Each vote satisfies only one item, even if the approver is in several groups. */
        approvers: {
          /** Group from the configuration or the sign-in. Default: people of any group or none. */
          group?: string;
          /** Number of different people. Default: 1. */
          count?: number;
        }[];
        /** Channels to notify when the stage opens. */
        notify?: string[];
      }[];
      /** true: members of the requester's groups cannot approve. Default: false. */
      exclude_requester_groups?: boolean;
      /** Number of different people who must approve. Default: 1. */
      quorum?: number;
      /** Time in which the request can be approved, such as 30m, 1h or 7d. Default: 24h. */
      expires_in?: string;
      /** Time in which an approved action can start, such as 15m, 1h or 7d. Default: 1h. */
      valid_for?: string;
      /** Time for which a rejection denies the same request of the same agent, such as 1h or 7d; none or 0s disables this. Default: the service's setting (24h). */
      rejection_holds?: string;
      /** Allows approvers to grant later actions, up to these caps. Default: no grants. */
      grants?: {
        /** Maximum time from a grant to its end, such as 8h. */
        for: string;
        /** Maximum number of uses of a grant. */
        count: number;
      };
      /** Machine reviewers that see the request as approvers do. */
      reviewers?: {
        /** Name of a configured reviewer. */
        name: string;
        /** true: the reviewer's approval replaces the approval of a person. Default: the reviewer can only deny or escalate. */
        may_approve?: boolean;
      }[];
      /** Parameters that an approver can change before another person approves, such as params.amount: a list, or a map with bounds. Default: none. */
      editable?: string[] | Record<string, unknown>;
      /** Channels to notify. */
      notify?: string[];
      /** Sentence that tells approvers what the action does, such as Refund {params.amount} to {params.customer}. Values are quoted and shortened. Default: tool, operation and the first parameter. */
      preview?: string;
      /** Members that approvers see first, such as params.amount or context.ticket. */
      show?: string[];
    };
  })[];
  /** Any data. It does not affect decisions. */
  metadata?: Record<string, unknown>;
}

export interface Policy {
  id: string;
  name: string;
  description: string | null;
  /** Mode of the active version, or of the newest if none is active. */
  mode: "enforce" | "shadow";
  /** Policy source that manages it; null if the API does. */
  managed_by: string | null;
  /** Whether it is part of the baseline, whose rules no other policy can replace. */
  baseline: boolean;
  status: "active" | "inactive";
  active_version: number | null;
  latest_version: number;
  created_at: string;
  updated_at: string;
  /** Number of the version in `definition`. */
  version: number;
  /** The policy as JSON, with the members that it has in YAML. */
  definition: Record<string, unknown>;
  /** The policy as its author wrote it, byte for byte. Null if it was sent as JSON or together with other policies, or comes from a policy source. */
  yaml: string | null;
  /** SHA-256 of the definition's canonical JSON, hex. */
  digest: string;
  /** Id of the key that created the version; null if a policy source did. */
  created_by: string | null;
  /** Warnings about probable mistakes, such as channels that the configuration does not define. */
  warnings: string[];
}

export interface Suggestion {
  /** Name of the policy: a digest of the rule. */
  policy: string;
  /** Whether a policy with this name is stored. */
  stored: boolean;
  /** The rule that requires approval. */
  in_place_of: {
    policy: string;
    rule: string;
  };
  tool: string;
  operation: string;
  agents: string[];
  /** Condition in CEL. */
  when: string;
  /** Parts of the condition. */
  conditions: ({
    kind: string;
    member: string | null;
    text: string;
  })[];
  /** The policy in shadow mode. */
  yaml: string;
  /** Tests made from real actions, for the folder of the policies. */
  tests: string;
  evidence: {
    /** Approvals that the rule covers. */
    approvals: number;
    /** Approvals that count: without a vote within three seconds, and at most half of `min_approvals` for each agent. */
    counted: number;
    /** Approvals with a vote within three seconds, of the person's own action, or in an emergency. They do not count. */
    weak: number;
    /** People behind the approvals that count. */
    people: number;
    /** Principals of these people, at most 20. */
    approvers: string[];
    /** Agents that submitted the approved actions. */
    agents: number;
    /** Different days on which the approved actions were submitted. */
    days: number;
    /** Time of the first of these approvals. */
    first_at: string;
    /** Time of the last of these approvals. */
    last_at: string;
    /** Median time of a vote, from the request or from the same approver's previous vote. */
    median_vote_ms: number;
    /** How the approved actions ended. */
    outcomes: {
      /** Succeeded. */
      succeeded: number;
      /** Failed. */
      failed: number;
      /** Unknown. */
      unknown: number;
      /** Not run. */
      not_run: number;
    };
    /** Rejected requests that miss the fewest conditions. */
    nearest_rejections: {
      action_id: string;
      /** When it was submitted. */
      at: string;
      agent_id: string;
      /** Conditions that it does not meet. */
      failed: string[];
    }[];
    /** Rejected requests with the same tool and operation. */
    rejections: number;
    rejection_bound: {
      /** Approvals that count, without the cap for each agent. */
      trials: number;
      /** Number of these requests that were rejected, which is always 0. */
      rejections: number;
      confidence: number;
      /** Upper bound of the rejection rate (Clopper-Pearson, one-sided). */
      upper: number;
    };
    /** Other requests of the range that the rule would allow. */
    newly_allows: {
      /** Requests that no person answered. */
      unanswered: number;
      /** Other approved requests. */
      approved: number;
      examples: {
        action_id: string;
        /** When it was submitted. */
        at: string;
        agent_id: string;
      }[];
    };
    /** Members, such as `params.amount`, for which the rule allows values that no one has approved. */
    open_members: string[];
    /** Every decision of the range, decided again with the rule. */
    backtest: {
      /** Decisions of the range. */
      evaluated: number;
      /** Decisions that the rule would change to `allow`. */
      flipped: number;
    };
  };
}

export interface Suggestions {
  /** Start of the range. */
  since: string;
  /** The shortest first. */
  suggestions: Suggestion[];
  /** Decisions that were read. */
  read: number;
  /** Decisions whose request was erased, altered or larger than 16,384 characters. */
  skipped: number;
  /** Number of combinations of rule, tool and operation with approvals. */
  groups: number;
  /** Rules that were discarded: they would have allowed a rejected request, or the requests that they would have allowed lack the minimum evidence. */
  disqualified: number;
  /** Whether the range has older decisions that were not read. */
  truncated: boolean;
}

export interface Replay {
  /** One decision was replayed. */
  kind: "decision";
  action_id: string;
  hash: string;
  /** Recorded time of the decision, which the replay used. */
  at: string;
  /** Whether all fields and the bytes of the entry are equal. */
  equal: boolean;
  fields: {
    field: string;
    recorded: unknown;
    replayed: unknown;
    equal: boolean;
  }[];
  /** Usage of limits before the decision, except of limits that read a redacted parameter; null for keys that cannot see all actions. */
  limits: {
    policy: string;
    limit: string;
    /** Digest of the limit's definition. */
    basis: string;
    /** Actions, or millionths of a sum. */
    used: number;
  }[] | null;
  /** Past actions that the conditions read, except histories that are grouped by a redacted parameter; null for keys that cannot see all actions. */
  histories: ({
    policy: string;
    /** Digest of the history's declaration and of the members that conditions read. */
    basis: string;
    /** Newest first. */
    actions: Record<string, unknown>[];
    /** Why the history was unknown: `no_session`, `no_value`, `too_large` or `too_many`. Null if there is no fault. */
    fault: string | null;
  })[] | null;
  /** Values of fact sources that the conditions read; null for keys that cannot see all actions. */
  sources: ({
    policy: string;
    /** Conditions read it as `facts.NAME`. */
    name: string;
    /** Digest of the declaration of the fact. */
    basis: string;
    /** When it was read. */
    at: string;
    /** Null if there is a fault. */
    value: unknown;
    /** Why the value was unknown: `no_source`, `no_input`, `no_answer`, `not_found`, `too_large` or `wrong_type`. Null if there is no fault. */
    fault: string | null;
  })[] | null;
  /** Attributes of the agent and its principal; null if no policy read one, and for keys that cannot see all actions. */
  attributes: {
    agent_groups: string[];
    agent_metadata: Record<string, unknown>;
    groups: string[];
    roles: string[];
  } | null;
  recorded: {
    policy_set: string | null;
    decision: Record<string, unknown>;
  };
  replayed: {
    policy_set: string | null;
    decision: Record<string, unknown>;
  };
  /** With `action_id`: later decisions on the same action, oldest first. `equal` above includes them. */
  redecisions: ({
    /** `vote`, `start`, `permit`, `review` or `edit`. */
    occasion: string | null;
    hash: string;
    /** Recorded time of the decision, which the replay used. */
    at: string;
    /** Whether all fields and the bytes of the entry are equal. */
    equal: boolean;
    fields: {
      field: string;
      recorded: unknown;
      replayed: unknown;
      equal: boolean;
    }[];
    /** Usage of limits before the decision, except of limits that read a redacted parameter; null for keys that cannot see all actions. */
    limits: {
      policy: string;
      limit: string;
      /** Digest of the limit's definition. */
      basis: string;
      /** Actions, or millionths of a sum. */
      used: number;
    }[] | null;
    /** Past actions that the conditions read, except histories that are grouped by a redacted parameter; null for keys that cannot see all actions. */
    histories: ({
      policy: string;
      /** Digest of the history's declaration and of the members that conditions read. */
      basis: string;
      /** Newest first. */
      actions: Record<string, unknown>[];
      /** Why the history was unknown: `no_session`, `no_value`, `too_large` or `too_many`. Null if there is no fault. */
      fault: string | null;
    })[] | null;
    /** Values of fact sources that the conditions read; null for keys that cannot see all actions. */
    sources: ({
      policy: string;
      /** Conditions read it as `facts.NAME`. */
      name: string;
      /** Digest of the declaration of the fact. */
      basis: string;
      /** When it was read. */
      at: string;
      /** Null if there is a fault. */
      value: unknown;
      /** Why the value was unknown: `no_source`, `no_input`, `no_answer`, `not_found`, `too_large` or `wrong_type`. Null if there is no fault. */
      fault: string | null;
    })[] | null;
    /** Attributes of the agent and its principal; null if no policy read one, and for keys that cannot see all actions. */
    attributes: {
      agent_groups: string[];
      agent_metadata: Record<string, unknown>;
      groups: string[];
      roles: string[];
    } | null;
    recorded: {
      policy_set: string | null;
      decision: Record<string, unknown>;
    };
    replayed: {
      policy_set: string | null;
      decision: Record<string, unknown>;
    };
  })[];
  /** The decision with the requested policies; null if none were requested. */
  now: {
    policy_set: string | null;
    decision: Record<string, unknown>;
    changed: boolean;
    fields: {
      field: string;
      recorded: unknown;
      replayed: unknown;
      equal: boolean;
    }[];
  } | null;
}

export interface Backtest {
  /** Decisions of a range were replayed. */
  kind: "backtest";
  /** Digest of the policy set that evaluated the decisions. */
  policy_set: string | null;
  since: string;
  until: string;
  /** Number of replayed decisions. */
  evaluated: number;
  /** Number of decisions with another effect. */
  flipped: number;
  /** Number of decisions with the same effect by another rule, or with other approval terms. */
  otherwise: number;
  /** Number of decisions that cannot be replayed because their requests were erased. */
  erased: number;
  /** Number of decisions that cannot be replayed because these policies read past actions (`history`), facts or attributes that the decisions did not read. */
  unrecorded: number;
  /** Number of decisions that cannot be replayed because their rows in the store were altered; `assent audit` lists them. */
  altered: number;
  /** Flips, grouped by old and new outcome, most frequent first. */
  flips: ({
    from: {
      effect: string;
      policy: string | null;
      rule: string | null;
    };
    to: {
      effect: string;
      policy: string | null;
      rule: string | null;
    };
    count: number;
    examples: {
      action_id: string;
      hash: string;
      at: string;
      agent_id: string;
      tool: string;
      operation: string;
    }[];
  })[];
  /** Number of flips in groups that are not listed. */
  unlisted: number;
  /** Limits without recorded usage, because they were not active under this name. Their usage was counted from the decisions of this report, starting from zero. */
  counted: {
    policy: string;
    limit: string;
    decisions: number;
  }[];
  /** Value of `before` to continue with, if the limit or the time limit of a request was reached; null if the range is complete. */
  next: number | null;
}

export interface Rota {
  name: string;
  /** As `member` of a shift, in the order of their shifts. */
  members: string[];
  time_zone: string;
  on_call: {
    /** `user:<id>`, or the configured reference if it refers to no active user. */
    member: string;
    /** Start of the shift. */
    from: string;
    /** End of the shift. */
    until: string;
  } | null;
  next: {
    /** `user:<id>`, or the configured reference if it refers to no active user. */
    member: string;
    /** Start of the shift. */
    from: string;
    /** End of the shift. */
    until: string;
  } | null;
}

export interface Session {
  id: string;
  /** `passkey`, `link`, `recovery_code`, `terminal` or `oidc:<provider>`. */
  method: string;
  browser: string;
  started_at: string;
  /** Precise to a minute. */
  seen_at: string;
  /** Whether the request came with this session. */
  current: boolean;
}

export interface Stop {
  id: string;
  /** ended: its end time has passed. */
  status: "holds" | "ended" | "lifted";
  /** Glob of the agents that are stopped; null for all. */
  agent: string | null;
  /** Glob of the tools that are stopped; null for all. */
  tool: string | null;
  /** Policy whose actions are stopped; null for all policies. */
  policy: string | null;
  /** When it expires; null if never. */
  until: string | null;
  /** When it was placed. */
  placed_at: string;
  /** Null for keys that neither see all actions nor have `stop:write`. */
  reason: string | null;
  /** Principal; null for keys that neither see all actions nor have `stop:write`. */
  placed_by: string | null;
  lift: {
    /** Number of people who must request to lift the stop. */
    needed: number;
    /** Requests to lift the stop, in order; empty for keys that neither see all actions nor have `stop:write`. */
    asked: ({
      /** Principal. */
      by: string;
      /** Time of the request to lift the stop. */
      at: string;
      reason: string | null;
    })[];
  };
  /** When it was lifted. */
  lifted_at: string | null;
  /** Sequence number of the ledger entry that placed it. */
  seq: number;
}

export interface SuggestedRule {
  /** Name of the rule's policy, which identifies the rule. */
  policy: string;
  /** `active`: allows actions. `reverted`: requires approval again, until a person restores it. `inactive`: its policy is not active, or in shadow mode. */
  status: "active" | "reverted" | "inactive";
  /** The rule that requires approval. */
  in_place_of: {
    policy: string;
    rule: string;
  };
  tool: string;
  operation: string;
  agents: string[];
  /** The rule reverts above this share of failed results. */
  max_failed: number;
  /** Newest results of its uses since it was put in force, oldest first: `s` for a success, `f` for a failure. */
  results: string;
  reverted: {
    /** Why it was reverted. */
    cause: "flag" | "stop" | "failure";
    /** When it was reverted. */
    at: string;
    /** Principal. */
    by: string | null;
    /** The action that was flagged or that failed. */
    action_id: string | null;
    /** The stop. */
    stop_id: string | null;
    comment: string | null;
  } | null;
}

export interface UserDetails {
  id: string;
  name: string;
  /** Principal of the user in records: `user:<id>`. */
  principal: string;
  roles: string[];
  groups: string[];
  identities: {
    issuer: string;
    subject: string;
  }[];
  passkeys: {
    id: string;
    name: string;
    added_at: string;
  }[];
  /** Unused recovery codes. */
  recovery_codes: number;
  /** Expiry of the open enrolment link. */
  link_expires_at: string | null;
  managed_by: string | null;
  ended_at: string | null;
  /** Last sign-in, even if its session has ended; null if there was none. */
  last_sign_in_at: string | null;
}

export interface Device {
  /** First 32 hexadecimal digits of the SHA-256 of the endpoint. */
  id: string;
  browser: string;
  /** When the device was added. */
  created_at: string;
  /** Time from which it is no longer notified, unless the user opens the console on it earlier. */
  expires_at: string;
}

export interface Problem {
  /** Reference to the documentation of the code. */
  type: string;
  title: string;
  status: number;
  /** What went wrong, and what to do. */
  detail: string;
  /** Stable identifier of the error, for programs. */
  code: "MALFORMED_JSON" | "INVALID_UTF8" | "DUPLICATE_KEY" | "LONE_SURROGATE" | "UNSAFE_INTEGER" | "TOO_DEEP" | "TOO_MANY_VALUES" | "BAD_REQUEST" | "MISSING_CREDENTIAL" | "INVALID_CREDENTIAL" | "KEY_ALTERED" | "STORE_ALTERED" | "INSUFFICIENT_SCOPE" | "RIGHTS_CHANGED" | "AGENT_MISMATCH" | "AGENT_UNBOUND" | "INVALID_SESSION_TOKEN" | "NOT_FOUND" | "METHOD_NOT_ALLOWED" | "NOT_ACCEPTABLE" | "PRECONDITION_FAILED" | "BODY_TOO_LARGE" | "UNSUPPORTED_MEDIA_TYPE" | "VALIDATION_FAILED" | "INVALID_CURSOR" | "RATE_LIMITED" | "TOO_MANY_BYTES" | "TOO_MANY_PENDING" | "AGENT_THROTTLED" | "TOO_MANY_STREAMS" | "TOO_MANY_WAITS" | "TOO_MANY_BACKTESTS" | "TOO_MANY_TRIALS" | "ACTION_NOT_FOUND" | "ACTION_NOT_PENDING" | "REJECTION_NOT_HELD" | "ACTION_NOT_STARTABLE" | "NO_LONGER_ALLOWED" | "MORE_APPROVALS_NEEDED" | "START_EXPIRED" | "EDIT_NOT_ALLOWED" | "REQUEST_EDITED" | "PLAN_NOT_FOUND" | "PLAN_VOTE_REQUIRED" | "PLAN_WAITING" | "PLAN_STOPPED" | "TOO_MANY_QUESTIONS" | "QUESTION_NOT_OPEN" | "ACTION_NOT_STARTED" | "OUTCOME_NOT_UNKNOWN" | "ACTION_OPEN" | "ACTION_HELD" | "ACTION_ERASED" | "RECORD_ALTERED" | "IDEMPOTENCY_CONFLICT" | "ALREADY_VOTED" | "SELF_APPROVAL" | "VOTE_SIGNATURE_REQUIRED" | "VOTE_SIGNATURE_INVALID" | "BREAK_GLASS_NOT_ALLOWED" | "BREAK_GLASS_NOT_FOUND" | "BREAK_GLASS_REVIEWED" | "REVIEWER_NOT_ELIGIBLE" | "APPROVER_NOT_ELIGIBLE" | "TOKEN_MALFORMED" | "TOKEN_INVALID" | "TOKEN_OTHER_ACTION" | "TOKEN_OTHER_APPROVER" | "APPROVAL_EXPIRED" | "PERMIT_INVALID" | "PERMIT_EXPIRED" | "PERMIT_REQUIRED" | "TOO_MANY_PERMITS" | "CREDENTIAL_NOT_ISSUED" | "NOT_THE_EXECUTOR" | "NOT_THE_SUBMITTER" | "KEY_NOT_FOUND" | "KEY_NAME_TAKEN" | "LAST_ADMIN_KEY" | "SCOPE_ESCALATION" | "POLICY_NOT_FOUND" | "POLICY_VERSION_NOT_FOUND" | "POLICY_NAME_TAKEN" | "POLICY_MANAGED" | "SIGNATURE_INVALID" | "POLICY_INVALID" | "TRIAL_TOO_LONG" | "AGENT_NOT_FOUND" | "AGENT_ID_TAKEN" | "HOLD_NOT_FOUND" | "GRANT_NOT_FOUND" | "GRANT_NOT_ALLOWED" | "GRANT_ENDED" | "TOO_MANY_GRANTS" | "SUGGESTED_RULE_NOT_FOUND" | "SUGGESTED_RULE_REVERTED" | "SUGGESTED_RULE_NOT_REVERTED" | "SUGGESTED_RULE_UNTRIED" | "HOLD_RELEASED" | "TOO_MANY_HOLDS" | "DELIVERY_NOT_FOUND" | "DELIVERY_NOT_DEAD" | "NOT_WITNESSED" | "ENTRY_NOT_FOUND" | "TILE_NOT_FOUND" | "INVALID_RANGE" | "NOT_REPLAYABLE" | "INTERNAL" | "FACTS_UNAVAILABLE" | "STORAGE_UNAVAILABLE" | "OVERLOADED" | "PERMIT_KEY_RETIRED" | "TRIAL_LOST" | "NOT_READY" | "SHUTTING_DOWN" | "STOPPED" | "STOP_NOT_FOUND" | "STOP_OVER" | "TOO_MANY_STOPS" | "USERS_INSECURE" | "USERS_CROSS_SITE" | "USERS_CHALLENGE_INVALID" | "USERS_PASSKEY_INVALID" | "USERS_PASSKEY_UNKNOWN" | "USERS_PASSKEY_CLONED" | "USERS_SIGN_IN_TOO_OLD" | "USERS_OWN_LINK" | "USERS_LINK_INVALID" | "USERS_NOT_FOUND" | "USERS_SESSION_NOT_FOUND" | "USERS_PASSKEY_NOT_FOUND" | "USERS_ENDED" | "USERS_NOT_ENDED" | "USERS_LAST_ADMIN" | "USERS_LAST_PASSKEY" | "USERS_TOO_MANY_PASSKEYS" | "USERS_MANAGED" | "USERS_PROVIDER_UNKNOWN" | "USERS_PROVIDER_UNAVAILABLE" | "USERS_PROVIDER_REFUSED" | "USERS_PROVIDER_INVALID" | "USERS_EMAIL_UNVERIFIED" | "USERS_EMAIL_TAKEN" | "USERS_SIGN_IN_ENDED" | "USERS_LOGOUT_INVALID" | "USERS_NOT_PROVISIONED" | "USERS_SCIM_INVALID" | "USERS_SCIM_PATH_INVALID" | "USERS_SCIM_FILTER_INVALID" | "USERS_SCIM_IMMUTABLE" | "USERS_SCIM_NOT_FOUND" | "USERS_SCIM_OTHER_PROVIDER" | "USERS_SCIM_CONFLICT" | "USERS_DELEGATION_INVALID" | "USERS_DELEGATION_NOT_FOUND" | "USERS_DELEGATION_ENDED" | "USERS_DEVICE_INVALID" | "USERS_DEVICE_NOT_FOUND" | "USERS_TOO_MANY_DEVICES" | "USERS_SESSION_REQUIRED" | "USERS_TERMINAL_UNCONFIRMED";
  request_id: string;
  errors?: {
    /** RFC 6901 pointer into the body. */
    pointer?: string;
    /** Name of a query or path parameter, or of a header. */
    parameter?: string;
    detail: string;
    /** Line in a YAML body, starting at 1. */
    line?: number;
    /** Column in a YAML body, starting at 1. */
    column?: number;
  }[];
}

export interface Api {
  "GET /v1/access-review": {
    query: {
      /** Length of the period that is reviewed; default 90. */
      days?: number | undefined;
      /** Form of the response; default `json`. */
      format?: "json" | "csv" | undefined;
    };
    body: never;
    response: {
      since: string;
      until: string;
      /** Ids of emergency approvals that no one has reviewed. */
      open_reviews: string[];
      rows: ({
        /** `voter`: someone who voted but is neither a user nor a live key, such as a revoked key without an owner. */
        kind: "user" | "key" | "voter";
        id: string | null;
        name: string;
        /** Principal for whom the votes count. A user and their keys have the same principal, and so the same votes. */
        principal: string;
        roles: string[];
        groups: string[];
        may_approve: boolean;
        /** The principal can approve actions that meet at least one of these limits. Null if it can approve all actions, or none. */
        limits: ({
          agents: string[] | null;
          tools: string[] | null;
          /** Other limits that an action must also meet, such as the limits of the user who made the key. */
          also: ({
            agents: string[] | null;
            tools: string[] | null;
          })[];
        })[] | null;
        /** Principals of the users on whose behalf they can approve now. */
        delegators: string[];
        agent_id: string | null;
        approvals: number;
        rejections: number;
        /** Emergency approvals without other approvers (break-glass). */
        break_glass: number;
        /** Share of approvals among the votes. */
        approval_rate: number | null;
        /** Median time from submission to vote. */
        median_seconds: number | null;
        last_used_at: string | null;
        /** Whether the user or key is active, was created before the period and was not used in it. */
        unused: boolean;
        ended_at: string | null;
      })[];
    };
  };
  "POST /v1/actions": {
    query: {
      /** Returns the open action of this key with the same request, if there is one, with the header `Action-Joined: true`. An action is open while it is pending, or allowed or approved and not started. It keeps the `meta` that it was created with. */
      join?: "open" | undefined;
    };
    body: {
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
    };
    response: Action;
  };
  "GET /v1/actions": {
    query: {
      status?: "allowed" | "denied" | "pending_approval" | "approved" | "expired" | "cancelled" | "executing" | "unknown" | "succeeded" | "failed" | undefined;
      agent_id?: string | undefined;
      /** Same as `agent_id`. */
      agent?: string | undefined;
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
      /** For old clients. Use `cursor` instead, which stays fast and does not skip items. */
      offset?: number | undefined;
    };
    body: never;
    response: {
      actions: Action[];
      next_cursor: string | null;
    };
  };
  "GET /v1/actions/{id}": {
    query: {
      /** Seconds to wait while the action is pending, limited by `server.max_wait_seconds`. */
      wait?: number | undefined;
    };
    body: never;
    response: Action;
  };
  "POST /v1/actions/{id}/answers": {
    query: never;
    body: {
      /** Default: the first question without an answer. */
      number?: number | undefined;
      /** For the approvers. The ledger contains a commitment to it. */
      answer: string;
    };
    response: Action;
  };
  "POST /v1/actions/{id}/approval": {
    query: never;
    body: {
      /** The action's `approval_token`, as returned to this credential. */
      token: string;
      /** true approves; false rejects. */
      approve: boolean;
      /** Recorded in the ledger. */
      reason?: string | undefined;
      /** Grants later actions of the same agent, tool and operation together with the approval. The scope must cover this action. */
      grant?: {
        /** Time from now to the end of the grant, such as 30m or 8h. */
        for: string;
        /** Maximum number of actions that the grant covers. */
        count: number;
        /** Condition in CEL over what policies can read, such as `params.repo == "web"`. Absent: covers every request. Stays in the ledger forever. */
        scope?: string | undefined;
        /** Default: no cap on a sum. */
        sum?: {
          /** CEL expression with a number as its value, such as `params.amount`. */
          of: string;
          /** Maximum sum over all uses. */
          at_most: number;
        } | undefined;
        /** true: a failed result of a use ends the grant. Default: false. */
        ends_on_failure?: boolean | undefined;
      } | undefined;
      /** true: approves in an emergency without other approvers (break-glass). Only for a signed-in user with the scope `approvals:break_glass`, and with a `reason`; opens a review. */
      break_glass?: boolean | undefined;
    };
    response: Action;
  };
  "POST /v1/actions/{id}/cancel": {
    query: never;
    body: {
      /** Recorded in the ledger. */
      reason?: string | undefined;
    };
    response: Action;
  };
  "POST /v1/actions/{id}/edit": {
    query: never;
    body: {
      /** The action's `approval_token`, as returned to this credential. */
      token: string;
      /** New values, of the same types as before. */
      changes: Record<string, unknown>;
      /** Recorded in the ledger. */
      reason?: string | undefined;
    };
    response: Action;
  };
  "POST /v1/actions/{id}/erase": {
    query: never;
    body: {
      /** Reason for the erasure, such as the number of an erasure request. The ledger keeps it forever, so include no personal data. */
      reason: string;
    };
    response: Action;
  };
  "GET /v1/actions/{id}/events": {
    query: never;
    body: never;
    response: {
      events: ({
        seq: number;
        hash: string;
        type: string;
        /** Time of the entry. */
        at: string;
        action_id: string | null;
        entry: Record<string, unknown>;
      })[];
    };
  };
  "GET /v1/actions/{id}/grant-suggestions": {
    query: never;
    body: never;
    response: {
      /** Earlier requests of the agent with this tool and operation with which the scopes were tested. */
      considered: number;
      /** The narrowest first, at most two. None would have covered a request that a person rejected. Empty if the request cannot be expressed as a scope: it is too long, or a policy redacts a parameter. */
      suggestions: ({
        /** Condition in CEL. It fixes all members of the request except those in `varying`. */
        scope: string;
        /** Empty: the scope covers only requests with the same parameters and context. A request with a member that this one does not have is never covered. */
        varying: {
          /** Member that may differ from this request, such as `params.amount`. */
          member: string;
          /** The values that it may have, such as `from 5 to 20`. */
          values: string;
        }[];
        /** Number of the compared requests that it would have covered. */
        covered: number;
        /** The newest of them, at most five. */
        requests: ({
          /** Action. */
          id: string;
          status: "allowed" | "denied" | "pending_approval" | "approved" | "expired" | "cancelled" | "executing" | "unknown" | "succeeded" | "failed";
          /** When it was submitted. */
          created_at: string;
          /** Its preview, or else its parameters, in one line. Hidden characters are marked. */
          summary: string;
        })[];
      })[];
    };
  };
  "POST /v1/actions/{id}/lift-rejection": {
    query: never;
    body: {
      /** Recorded in the ledger. */
      reason?: string | undefined;
    };
    response: Action;
  };
  "POST /v1/actions/{id}/permit": {
    query: never;
    body: {

    };
    response: Action;
  };
  "POST /v1/actions/{id}/questions": {
    query: never;
    body: {
      /** For the agent. The ledger contains a commitment to it. */
      question: string;
    };
    response: Action;
  };
  "POST /v1/actions/{id}/result": {
    query: never;
    body: {
      success: boolean;
      /** What went wrong. */
      error?: string | null | undefined;
      /** Details of the result: ids, amounts, durations. */
      meta?: Record<string, unknown> | undefined;
      /** `attempt` of the start that this result belongs to. The result is rejected if another start, even by the same key, started the action. */
      attempt?: string | undefined;
    };
    response: Action;
  };
  "POST /v1/actions/{id}/settle": {
    query: never;
    body: {
      /** Whether the action had its effect. */
      success: boolean;
      /** How this is known. Recorded in the ledger, where it stays after an erasure. */
      reason: string;
      /** Details of the result: ids, amounts, durations. */
      meta?: Record<string, unknown> | undefined;
    };
    response: Action;
  };
  "POST /v1/actions/{id}/start": {
    query: never;
    body: {
      /** Permit of this action. The key that submitted the action needs none. */
      permit?: string | undefined;
      /** `request_hash` of the record that the caller is about to run. Required if an approver or the policies changed the request, so that no caller runs the proposed parameters. */
      request_hash?: string | undefined;
      /** Random string for this start. If the response is lost, repeat the start with the same `attempt`. The repeated start gets the same response while the action may still start. */
      attempt?: string | undefined;
    };
    response: Action;
  };
  "POST /v1/agent-sessions": {
    query: never;
    body: {
      /** The key whose actions belong to the session. Default: the key of this request. */
      key_id?: string | undefined;
      /** The same name, issuer and key give the same session. Default: a random name, which starts a new session. */
      name?: string | undefined;
      /** Seconds in which the token is accepted. Default: one day. */
      expires_in?: number | undefined;
    };
    response: {
      /** Appears in the records of decisions. */
      session_id: string;
      key_id: string;
      /** For the header `Assent-Session`. */
      token: string;
      expires_at: string;
    };
  };
  "GET /v1/agents": {
    query: {
      status?: "active" | "suspended" | undefined;
      /** Maximum number of items on a page; a page with large items can have fewer. */
      limit?: number | undefined;
      /** `next_cursor` of the previous page. */
      cursor?: string | undefined;
      /** For old clients. Use `cursor` instead, which stays fast and does not skip items. */
      offset?: number | undefined;
    };
    body: never;
    response: {
      agents: Agent[];
      next_cursor: string | null;
    };
  };
  "POST /v1/agents": {
    query: never;
    body: {
      /** Value of `agent_id` in actions. */
      id: string;
      /** Display name. Default: the id. */
      name?: string | undefined;
      description?: string | null | undefined;
      /** Tools that the agent may use, without regard to case. Null allows every tool; an empty list allows none. */
      allowed_tools?: string[] | null | undefined;
      /** Any data of at most 16 KiB as JSON. Conditions in policies read it as `agent_metadata`. */
      metadata?: Record<string, unknown> | undefined;
    };
    response: Agent;
  };
  "GET /v1/agents/{id}": {
    query: never;
    body: never;
    response: Agent;
  };
  "PATCH /v1/agents/{id}": {
    query: never;
    body: {
      /** Display name. Default: the id. */
      name?: string | undefined;
      description?: string | null | undefined;
      /** Tools that the agent may use, without regard to case. Null allows every tool; an empty list allows none. */
      allowed_tools?: string[] | null | undefined;
      /** Any data of at most 16 KiB as JSON. Conditions in policies read it as `agent_metadata`. */
      metadata?: Record<string, unknown> | undefined;
    };
    response: Agent;
  };
  "POST /v1/agents/{id}/resume": {
    query: never;
    body: never;
    response: Agent;
  };
  "POST /v1/agents/{id}/suspend": {
    query: never;
    body: {
      /** Recorded in the ledger. */
      reason?: string | undefined;
    };
    response: Agent;
  };
  "GET /v1/analytics": {
    query: {
      /** Start of the range, inclusive. Default: one day before `until`. */
      since?: string | undefined;
      /** End of the range, exclusive. Default: the current time. */
      until?: string | undefined;
      /** Interval of the series. Weeks begin on Monday. Default: chosen by the length of the range. */
      interval?: "hour" | "day" | "week" | "month" | undefined;
      /** IANA name of the time zone in which days, weeks and months begin. Default: UTC. */
      time_zone?: string | undefined;
      /** Counts only actions of this agent. */
      agent_id?: string | undefined;
    };
    body: never;
    response: Analytics;
  };
  "GET /v1/analytics/oversight": {
    query: {
      /** Entries recorded at or after this time. Default: 30 days before `until`. */
      since?: string | undefined;
      /** Entries recorded before this time. Default: now. */
      until?: string | undefined;
    };
    body: never;
    response: Oversight;
  };
  "GET /v1/api-keys": {
    query: {
      /** `ended`: revoked or expired. */
      status?: "live" | "ended" | undefined;
      /** Keys that are bound to this agent. */
      agent_id?: string | undefined;
      /** Keys whose votes count as this principal's: `user:<id>` or `key:<id>`. */
      principal?: string | undefined;
      /** Maximum number of items on a page; a page with large items can have fewer. */
      limit?: number | undefined;
      /** `next_cursor` of the previous page. */
      cursor?: string | undefined;
      /** For old clients. Use `cursor` instead, which stays fast and does not skip items. */
      offset?: number | undefined;
    };
    body: never;
    response: {
      api_keys: ApiKey[];
      next_cursor: string | null;
    };
  };
  "POST /v1/api-keys": {
    query: never;
    body: {
      /** Unique among live keys. */
      name: string;
      /** A predefined set of scopes, added to `scopes`. Default: `agent` if `scopes` is also absent. */
      preset?: "agent" | "approver" | "auditor" | "admin" | undefined;
      scopes?: ("admin" | "actions:submit" | "actions:read" | "actions:read_own" | "actions:execute" | "actions:erase" | "actions:settle" | "holds:write" | "credentials:receive" | "approvals:decide" | "approvals:break_glass" | "grants:write" | "sessions:issue" | "policies:read" | "policies:write" | "policies:activate" | "stop:write" | "keys:manage" | "agents:read" | "agents:write" | "users:read" | "users:manage" | "analytics:read" | "events:read" | "provenance:read" | "replay:run" | "metrics:read" | "deliveries:read" | "deliveries:retry" | "coverage:write" | "users:provision")[] | undefined;
      /** Agent that the key is bound to. The key submits only as this agent, and sees only this agent's actions. */
      agent_id?: string | null | undefined;
      /** The user to whom the key belongs, or who is behind its agent: `user:<id>`, the verified e-mail address of a user, or `<issuer>#<subject>` for an account at an identity provider. A name identifies no one. Default: the creator of the key, which is the user of the session or the owner of the creating key. Once people sign in, a key that may approve needs an owner. A key has at most the rights of its owner. Keys of one owner count as one approver, and cannot approve each other's actions. */
      owner?: string | null | undefined;
      expires_at?: string | null | undefined;
    };
    response: {
      id: string;
      name: string;
      /** First characters of the value. */
      prefix: string;
      scopes: string[];
      agent_id: string | null;
      owner: string | null;
      created_by: string | null;
      created_at: string;
      expires_at: string | null;
      revoked_at: string | null;
      /** Accurate to two minutes; null if the key was never used. */
      last_used_at: string | null;
      /** The value of the key. It is returned only once and not stored; null if the Idempotency-Key was used before. */
      key: string | null;
      /** Points to consider before handing out the key. */
      warnings: string[];
    };
  };
  "GET /v1/api-keys/{id}": {
    query: never;
    body: never;
    response: ApiKey;
  };
  "DELETE /v1/api-keys/{id}": {
    query: never;
    body: never;
    response: ApiKey;
  };
  "GET /v1/api-keys/names": {
    query: {
      /** Ids of keys or users, up to 100, separated by commas. */
      ids: string;
    };
    body: never;
    response: {
      /** The existing keys, including revoked and expired ones, in no particular order. */
      keys: ({
        id: string;
        name: string;
        owner: string | null;
      })[];
    };
  };
  "POST /v1/approval-link": {
    query: never;
    body: {
      /** Link token: the part of the link after `#`. */
      token: string;
    };
    response: LinkAnswer;
  };
  "POST /v1/approval-link/verdict": {
    query: never;
    body: {
      /** true approves; false rejects. */
      approve: boolean;
      /** Recorded in the ledger. */
      reason?: string | undefined;
      /** `shown` of the response that the voter read. The vote is rejected if the request, its preview or the questions to the agent have changed since. */
      shown: string;
      /** Link token: the part of the link after `#`. */
      token: string;
    };
    response: LinkAnswer;
  };
  "GET /v1/approvals": {
    query: {
      /** `mine`: actions that this credential can approve now. `second_vote`: actions that have an approval and need more. */
      view?: "mine" | "second_vote" | undefined;
      agent_id?: string | undefined;
      tool?: string | undefined;
      operation?: string | undefined;
      risk_level?: "low" | "medium" | "high" | "critical" | undefined;
      /** Words that each occur in the agent, the tool, the operation, the parameters or the context, in any case; or the first 8 or more characters of an id. */
      q?: string | undefined;
      /** Default `deadline`, with the earliest first. `risk` lists the highest risk first, then the earliest deadline. */
      sort?: "deadline" | "newest" | "oldest" | "risk" | undefined;
      /** With `view=mine`: lists the actions that this user can approve now and the caller can see. For a user other than the caller, requires `users:read` or `users:manage`. */
      user_id?: string | undefined;
      /** Maximum number of items on a page; a page with large items can have fewer. */
      limit?: number | undefined;
      /** `next_cursor` of the previous page. */
      cursor?: string | undefined;
    };
    body: never;
    response: {
      actions: Action[];
      /** Number of pending actions on all pages that this key may see and that match the filters. Null if more are pending than one request reads: 20,000, or 1,000 for `view=mine`. */
      total: number | null;
      next_cursor: string | null;
    };
  };
  "GET /v1/break-glass": {
    query: {
      status?: "open" | "reviewed" | undefined;
      /** Maximum number of items on a page; a page with large items can have fewer. */
      limit?: number | undefined;
      /** `next_cursor` of the previous page. */
      cursor?: string | undefined;
      /** For old clients. Use `cursor` instead, which stays fast and does not skip items. */
      offset?: number | undefined;
    };
    body: never;
    response: {
      break_glass: BreakGlassApproval[];
      next_cursor: string | null;
    };
  };
  "POST /v1/break-glass/{id}/review": {
    query: never;
    body: {
      /** What the review found. Recorded in the ledger, where it stays after an erasure. */
      comment: string;
    };
    response: BreakGlassApproval;
  };
  "GET /v1/coverage": {
    query: {
      /** Maximum number of items on a page; a page with large items can have fewer. */
      limit?: number | undefined;
      /** `next_cursor` of the previous page. */
      cursor?: string | undefined;
    };
    body: never;
    response: {
      statements: CoverageStatement[];
      next_cursor: string | null;
    };
  };
  "POST /v1/coverage": {
    query: never;
    body: {
      /** Name of the source. */
      source: string;
      /** Published format of its log. */
      format: string;
      /** Start of the window, inclusive. */
      from: string;
      /** End of the window, exclusive. */
      to: string;
      tolerance_seconds: number;
      /** The operations whose effects were compared. */
      operations: {
        tool: string;
        operation: string;
      }[];
      /** Patterns of the identities whose effects were compared; null for all. */
      actors: string[] | null;
      /** The log files that were read. */
      files: {
        name: string;
        sha256: string;
        bytes: number;
        /** Number of all records in the file. */
        records: number;
      }[];
      /** What the source does not record. */
      cannot_see: string[];
      effects: {
        /** Effects in the window: matched, unmatched and unknown. */
        total: number;
        /** Number of effects with an action's id, operation, parameters and time. */
        matched: number;
        /** Number of effects that no action explains. */
        unmatched: number;
        /** Number of effects that could be paired only by a guess. */
        unknown: number;
      };
      actions: {
        /** Actions that reported success in the window: matched, missing and unknown. */
        total: number;
        /** Number of actions that have an effect with their id, operation, parameters and time. */
        matched: number;
        /** Number of actions that reported success but have no matching effect. */
        missing: number;
        /** Number of actions that could be paired only by a guess, or whose parameters were erased. */
        unknown: number;
      };
      skipped: {
        /** Number of repeated events in the files. */
        duplicates: number;
        /** Number of events outside the window. */
        outside: number;
        /** Number of events of kinds that no mapping names. */
        unmapped: number;
        /** Number of records without an effect, such as failed calls. */
        no_effect: number;
        /** Number of events of other identities. */
        other_actors: number;
      };
      /** The first 50 effects that no action explains. */
      unmatched: ({
        id: string;
        /** Time in the source. */
        at: string;
        event: string;
        actor: string;
        action_id: string | null;
        reason: "unknown_action" | "other_operation" | "parameters_differ" | "outside_action" | "already_matched" | "erased" | "not_read" | "no_action";
      })[];
      /** The first 50 actions that report a success without an effect. */
      missing: {
        id: string;
        /** Time of the result. */
        at: string;
      }[];
    };
    response: CoverageStatement;
  };
  "GET /v1/coverage/executions": {
    query: {
      /** Start of the range of entry times, inclusive. */
      since: string;
      /** End of the range of entry times, exclusive. */
      until: string;
      /** Maximum number of entries on a page. */
      limit?: number | undefined;
      /** `next_cursor` of the previous page. */
      cursor?: string | undefined;
    };
    body: never;
    response: {
      executions: Execution[];
      next_cursor: string | null;
    };
  };
  "GET /v1/delegations": {
    query: {
      status?: "scheduled" | "active" | "ended" | undefined;
      /** Delegations from or to this user. */
      user_id?: string | undefined;
      /** Maximum number of items on a page; a page with large items can have fewer. */
      limit?: number | undefined;
      /** `next_cursor` of the previous page. */
      cursor?: string | undefined;
      /** For old clients. Use `cursor` instead, which stays fast and does not skip items. */
      offset?: number | undefined;
    };
    body: never;
    response: {
      delegations: Delegation[];
      next_cursor: string | null;
    };
  };
  "GET /v1/delegations/{id}": {
    query: never;
    body: never;
    response: Delegation;
  };
  "POST /v1/delegations/{id}/revoke": {
    query: never;
    body: {
      /** Recorded in the ledger. */
      comment?: string | undefined;
    };
    response: Delegation;
  };
  "GET /v1/deliveries": {
    query: {
      /** scheduled: created for a later time. waiting: will be attempted at next_attempt_at. dead: failed permanently, can be retried. obsolete: no longer needed. */
      state?: "scheduled" | "waiting" | "delivered" | "dead" | "obsolete" | undefined;
      destination?: string | undefined;
      action_id?: string | undefined;
      /** Maximum number of items on a page; a page with large items can have fewer. */
      limit?: number | undefined;
      /** `next_cursor` of the previous page. */
      cursor?: string | undefined;
      /** For old clients. Use `cursor` instead, which stays fast and does not skip items. */
      offset?: number | undefined;
    };
    body: never;
    response: {
      deliveries: Delivery[];
      next_cursor: string | null;
    };
  };
  "GET /v1/deliveries/{id}": {
    query: never;
    body: never;
    response: Delivery;
  };
  "POST /v1/deliveries/{id}/retry": {
    query: never;
    body: never;
    response: Delivery;
  };
  "POST /v1/enrolment": {
    query: never;
    body: {
      /** Token of an enrolment link, or a recovery code. */
      token: string;
      /** `PublicKeyCredential.toJSON()` of `navigator.credentials.create`. */
      response: {
        id: string;
        rawId: string;
        type: "public-key";
        response: {
          clientDataJSON: string;
          attestationObject: string;
        };
        clientExtensionResults: Record<string, unknown>;
      };
      /** For lists, e.g. `YubiKey`. */
      name?: string | undefined;
    };
    response: {
      user: User;
      session_id: string;
      /** For the header `Assent-Session` of every request with the session's cookie. */
      page_token: string;
      /** Shown only once; null if earlier codes are left. */
      recovery_codes: string[] | null;
    };
  };
  "POST /v1/enrolment/options": {
    query: never;
    body: {
      /** Token of an enrolment link, or a recovery code. */
      token: string;
    };
    response: {
      /** Name of the user. */
      user: string;
      options: Record<string, unknown>;
    };
  };
  "POST /v1/erasures": {
    query: never;
    body: {
      /** Counts the matching actions and erases nothing. Default: true. */
      dry_run?: boolean | undefined;
      /** Reason for the erasure, such as the number of an erasure request. The ledger keeps it forever, so include no personal data. */
      reason?: string | undefined;
      /** Actions created before. */
      until?: string | undefined;
      /** Actions of this agent. */
      agent_id?: string | undefined;
      /** Actions that contain exactly this value in `params`, `context` or `result`. A string must match completely. */
      value?: string | number | boolean | null | undefined;
      /** JSON pointer (RFC 6901) to the value, e.g. `/params/customer/email`. Default: anywhere. */
      pointer?: string | undefined;
      /** A person's identifier, such as an e-mail address: actions that mention it as a whole word, in any case, in `params`, `context`, `meta`, `result`, questions or answers. An address does not match as part of a longer one. It is not recorded. */
      subject?: string | undefined;
      /** `next` of an earlier response, to continue there. */
      before?: number | undefined;
    };
    response: {
      dry_run: boolean;
      /** Number of actions scanned, newest first. */
      looked_at: number;
      /** Matching actions that had not been erased before. */
      matched: number;
      /** Matching actions that are open: pending, startable, or started within the last day without a result. They are not erased. */
      open: number;
      /** Matching actions that differ from the ledger. They are not erased; run `assent audit`. */
      altered: number;
      /** Matching actions that are under a legal hold. They are not erased. */
      held: number;
      /** Ids of these holds that the caller may see: `GET /v1/holds/{id}`. */
      holds: string[];
      erased: number;
      /** Send it as `before` to continue, because one request scans only a few thousand actions. Null when all were scanned. */
      next: number | null;
    };
  };
  "GET /v1/events": {
    query: {
      /** Only events with a greater sequence number; -1 for all events. Default: the stream starts with the next event. `Last-Event-ID` takes precedence. */
      after?: number | undefined;
      /** one or more of decision, approval, redecision, question, review, execution, erasure, part_erasure, plan, policy_set, api_key, agent, user, legal_hold, grant, delegation, break_glass, suggested_rule, throttle, permit_key, log_key, actions:credential_issued, actions:credential_ended, stop, coverage:statement, users:session, separated by commas */
      type?: string | undefined;
      agent_id?: string | undefined;
      /** Same as `agent_id`. */
      agent?: string | undefined;
      /** Events of actions with this tool. */
      tool?: string | undefined;
      action_id?: string | undefined;
    };
    body: never;
    response: never;
  };
  "GET /v1/events/page": {
    query: {
      /** Only events with a greater sequence number; -1 for all events. Default: from the beginning. */
      after?: number | undefined;
      /** one or more of decision, approval, redecision, question, review, execution, erasure, part_erasure, plan, policy_set, api_key, agent, user, legal_hold, grant, delegation, break_glass, suggested_rule, throttle, permit_key, log_key, actions:credential_issued, actions:credential_ended, stop, coverage:statement, users:session, separated by commas */
      type?: string | undefined;
      agent_id?: string | undefined;
      /** Same as `agent_id`. */
      agent?: string | undefined;
      /** Events of actions with this tool. */
      tool?: string | undefined;
      action_id?: string | undefined;
      /** Maximum number of events on a page. */
      limit?: number | undefined;
    };
    body: never;
    response: EventPage;
  };
  "POST /v1/gate/decide": {
    query: {
      /** Submits the action and records the decision, like POST /v1/actions, so that limits count it. The response has its `action_id`; start the action before you run it. */
      record?: boolean | undefined;
    };
    body: {
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
    };
    response: {
      /** Always false: this response does not permit the action to run. Submit the action and start it. */
      is_permission: false;
      /** With `record=true`: the new action. */
      action_id: string | null;
      /** Equivalent of `decision`: EXECUTE for allow, ABSTAIN for require_approval or a request that obligations changed, HALT for deny. Votes do not change it; `status` says whether the action may run now. */
      outcome: "EXECUTE" | "ABSTAIN" | "HALT";
      /** Null if the rules allow the action but a limit applies, because only recorded decisions count; or if obligations change the request. */
      decision: "allow" | "deny" | "require_approval" | null;
      reason: string;
      reason_code: string;
      risk_level: string | null;
      policy: string | null;
      rule: string | null;
      policy_hash: string | null;
      policy_version: number | null;
      request_hash: string;
      /** Whether the active rules deny this operation for all parameters and contexts. */
      never_allowed: boolean;
    };
  };
  "GET /v1/grants": {
    query: {
      /** true lists only grants that have not ended; false, only ended grants. */
      active?: boolean | undefined;
      agent_id?: string | undefined;
      /** Maximum number of items on a page; a page with large items can have fewer. */
      limit?: number | undefined;
      /** `next_cursor` of the previous page. */
      cursor?: string | undefined;
    };
    body: never;
    response: {
      grants: Grant[];
      next_cursor: string | null;
    };
  };
  "POST /v1/grants": {
    query: never;
    body: {
      /** Agent that may act. */
      agent_id: string;
      /** Tool that it may use. */
      tool: string;
      /** Operation of the tool. */
      operation: string;
      /** Time from now to the end of the grant, such as 30m or 8h. */
      for: string;
      /** Maximum number of actions that the grant covers. */
      count: number;
      /** Condition in CEL over what policies can read, such as `params.repo == "web"`. Absent: covers every request. Stays in the ledger forever. */
      scope?: string | undefined;
      /** Default: no cap on a sum. */
      sum?: {
        /** CEL expression with a number as its value, such as `params.amount`. */
        of: string;
        /** Maximum sum over all uses. */
        at_most: number;
      } | undefined;
      /** true: a failed result of a use ends the grant. Default: false. */
      ends_on_failure?: boolean | undefined;
      /** Recorded in the ledger. */
      reason?: string | undefined;
    };
    response: Grant;
  };
  "GET /v1/grants/{id}": {
    query: never;
    body: never;
    response: Grant;
  };
  "POST /v1/grants/{id}/flag": {
    query: never;
    body: {
      /** Action that the grant covered. */
      action_id: string;
      /** Recorded in the ledger. */
      reason: string;
    };
    response: Grant;
  };
  "POST /v1/grants/{id}/revoke": {
    query: never;
    body: {
      /** Recorded in the ledger. */
      reason?: string | undefined;
    };
    response: Grant;
  };
  "GET /v1/holds": {
    query: never;
    body: never;
    response: {
      /** Active legal holds, oldest first. */
      holds: LegalHold[];
    };
  };
  "POST /v1/holds": {
    query: never;
    body: {
      /** The ledger keeps it forever, so include no personal data. */
      reason: string;
      /** Id of the action to keep. */
      action?: string | undefined;
      /** Keeps the actions of this agent, including later ones, in any spelling of its name. */
      agent?: string | undefined;
      /** A person's identifier, such as an e-mail address: keeps the actions that mention it, including later ones, as in `POST /v1/erasures`. The ledger contains only a salted commitment. The store keeps the identifier until the hold is released. */
      subject?: string | undefined;
    };
    response: LegalHold;
  };
  "GET /v1/holds/{id}": {
    query: never;
    body: never;
    response: LegalHold;
  };
  "POST /v1/holds/{id}/release": {
    query: never;
    body: {
      /** The ledger keeps it forever, so include no personal data. */
      reason: string;
    };
    response: LegalHold;
  };
  "GET /v1/me": {
    query: never;
    body: never;
    response: Me;
  };
  "POST /v1/plans": {
    query: never;
    body: {
      /** In the order in which people see them. All must have the same agent. */
      actions: ({
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
      })[];
      /** Each action can start only when all earlier actions have ended. Default: false. */
      ordered?: boolean | undefined;
      /** No action can start after another action has failed or has an unknown outcome. The same applies if another action was denied or cancelled or has expired, unless people have since approved the list without it. Default: false. */
      stop_on_failure?: boolean | undefined;
    };
    response: Plan;
  };
  "GET /v1/plans": {
    query: {
      /** Only plans of this agent. */
      agent_id?: string | undefined;
      /** Maximum number of plans. */
      limit?: number | undefined;
      /** `next_cursor` of the previous page. */
      cursor?: string | undefined;
    };
    body: never;
    response: {
      plans: PlanSummary[];
      next_cursor: string | null;
    };
  };
  "GET /v1/plans/{id}": {
    query: never;
    body: never;
    response: Plan;
  };
  "POST /v1/plans/{id}/approval": {
    query: never;
    body: {
      /** The plan's `approval_token`, as returned to this credential. */
      token: string;
      /** False rejects every pending action of the plan. */
      approve: boolean;
      /** Recorded in the ledger. */
      reason?: string | undefined;
      /** Pending actions to reject, while the others are approved. */
      strikes?: ({
        /** Position in the plan, from 1. */
        position: number;
        /** Recorded in the ledger. */
        reason?: string | undefined;
      })[] | undefined;
    };
    response: Plan;
  };
  "POST /v1/plans/{id}/cancel": {
    query: never;
    body: {
      /** Recorded in the ledger. */
      reason?: string | undefined;
    };
    response: Plan;
  };
  "POST /v1/plans/{id}/challenge": {
    query: never;
    body: {
      /** False rejects every pending action of the plan. */
      approve: boolean;
      /** Recorded in the ledger. */
      reason?: string | undefined;
      /** Pending actions to reject, while the others are approved. */
      strikes?: ({
        /** Position in the plan, from 1. */
        position: number;
        /** Recorded in the ledger. */
        reason?: string | undefined;
      })[] | undefined;
    };
    response: {
      /** Send it with the votes. Accepted once, in this session. */
      nonce: string;
      /** Time until which the votes must be sent. */
      expires_at: string;
      /** What is signed, in order. */
      statements: ({
        action_id: string;
        /** SHA-256(salt ‖ request hash). */
        commitment: string;
        /** Leaf hash of the entry that made the action pending. */
        decision: string;
        /** The grant to create with the vote; null if there is none. */
        grant: {
          /** Maximum number of uses. */
          count: number;
          /** Whether a failed result of a use ends the grant. */
          ends_on_failure: boolean;
          /** Milliseconds from the vote to the end of the grant. */
          for_ms: number;
          /** CEL over the request; null covers every request. */
          scope: string | null;
          /** Maximum sum over all uses. */
          sum: {
            /** CEL expression with a number as its value. */
            of: string;
            at_most: number;
          } | null;
        } | null;
        /** The nonce. */
        nonce: string;
        /** Origin of the log. */
        origin: string;
        /** Digest of the actions that remain after the vote on a plan; null unless the vote is part of one. */
        plan: string | null;
        /** Salted commitment to the preview of the rule; null if the rule has no preview. */
        preview: string | null;
        /** Digest of the questions to the agent and its answers; null if there are none. */
        questions: string | null;
        /** The reason given. */
        reason: string | null;
        /** The approver's principal. */
        user: string;
        vote: "approve" | "deny" | "break_glass";
      })[];
      /** Options for `navigator.credentials.get`; binary members are base64url. */
      options: Record<string, unknown>;
    };
  };
  "POST /v1/plans/{id}/signed-approval": {
    query: never;
    body: {
      nonce: string;
      /** `toJSON()` of the result of `navigator.credentials.get`. */
      response: {
        id: string;
        response: {
          authenticatorData: string;
          clientDataJSON: string;
          signature: string;
        };
      };
      /** False rejects every pending action of the plan. */
      approve: boolean;
      /** Recorded in the ledger. */
      reason?: string | undefined;
      /** Pending actions to reject, while the others are approved. */
      strikes?: ({
        /** Position in the plan, from 1. */
        position: number;
        /** Recorded in the ledger. */
        reason?: string | undefined;
      })[] | undefined;
    };
    response: Plan;
  };
  "GET /v1/policies": {
    query: {
      status?: "active" | "inactive" | undefined;
      name?: string | undefined;
      /** Maximum number of items on a page; a page with large items can have fewer. */
      limit?: number | undefined;
      /** `next_cursor` of the previous page. */
      cursor?: string | undefined;
      /** For old clients. Use `cursor` instead, which stays fast and does not skip items. */
      offset?: number | undefined;
    };
    body: never;
    response: {
      policies: ({
        id: string;
        name: string;
        description: string | null;
        /** Mode of the active version, or of the newest if none is active. */
        mode: "enforce" | "shadow";
        /** Policy source that manages it; null if the API does. */
        managed_by: string | null;
        /** Whether it is part of the baseline, whose rules no other policy can replace. */
        baseline: boolean;
        status: "active" | "inactive";
        active_version: number | null;
        latest_version: number;
        created_at: string;
        updated_at: string;
        /** Number of rules in the newest version. */
        rules: number;
      })[];
      next_cursor: string | null;
    };
  };
  "POST /v1/policies": {
    query: {
      /** Immediately makes the new version the active one. Also needs policies:activate. */
      activate?: boolean | undefined;
    };
    body: PolicyDefinition;
    response: Policy;
  };
  "GET /v1/policies/{id}": {
    query: {
      /** Number of the version. Every change creates a new version, and versions are immutable. */
      version?: number | undefined;
    };
    body: never;
    response: Policy;
  };
  "PUT /v1/policies/{id}": {
    query: {
      /** Immediately makes the new version the active one. Also needs policies:activate. */
      activate?: boolean | undefined;
    };
    body: PolicyDefinition;
    response: Policy;
  };
  "DELETE /v1/policies/{id}": {
    query: never;
    body: never;
    response: Policy;
  };
  "POST /v1/policies/{id}/activate": {
    query: never;
    body: {
      /** Number of the version. Every change creates a new version, and versions are immutable. */
      version?: number | undefined;
    };
    response: Policy;
  };
  "POST /v1/policies/{id}/deactivate": {
    query: never;
    body: never;
    response: Policy;
  };
  "GET /v1/policies/{id}/diff": {
    query: {
      /** Number of the version. Every change creates a new version, and versions are immutable. */
      from?: number | undefined;
      /** Number of the version. Every change creates a new version, and versions are immutable. */
      to?: number | undefined;
    };
    body: never;
    response: {
      policy: string;
      from: number;
      to: number;
      changes: ({
        kind: "policy_changed" | "limit_added" | "limit_removed" | "limit_changed" | "rule_added" | "rule_removed" | "rule_changed" | "rule_moved";
        rule: string | null;
        /** Position among the rules, from 1. */
        before: number | null;
        /** Position among the rules, from 1. */
        after: number | null;
        fields: {
          field: string;
          before: unknown;
          after: unknown;
        }[];
        /** One sentence for people. */
        summary: string;
      })[];
    };
  };
  "GET /v1/policies/{id}/shadow": {
    query: {
      /** Start of the range, inclusive. Default: one week before `until`. */
      since?: string | undefined;
      /** End of the range, exclusive. Default: the current time. */
      until?: string | undefined;
      /** Maximum number of decisions in a range, newest first; 10,000 when absent. */
      limit?: number | undefined;
      /** `next` of an earlier response: continues where it ended. */
      before?: number | undefined;
      /** Examples of each kind of flip; 3 when absent. */
      examples?: number | undefined;
    };
    body: never;
    response: {
      policy: string;
      since: string;
      until: string;
      /** Decisions for which the policy matched. */
      evaluated: number;
      /** Number of decisions with another effect. */
      flipped: number;
      /** Number of decisions with the same effect by another rule, or with other approval terms. */
      otherwise: number;
      /** Number of decisions that cannot be replayed because their requests were erased. */
      erased: number;
      /** Number of decisions that cannot be replayed because these policies read past actions (`history`), facts or attributes that the decisions did not read. */
      unrecorded: number;
      /** Number of decisions that cannot be replayed because their rows in the store were altered; `assent audit` lists them. */
      altered: number;
      /** Flips, grouped by old and new outcome, most frequent first. */
      flips: ({
        from: {
          effect: string;
          policy: string | null;
          rule: string | null;
        };
        to: {
          effect: string;
          policy: string | null;
          rule: string | null;
        };
        count: number;
        examples: {
          action_id: string;
          hash: string;
          at: string;
          agent_id: string;
          tool: string;
          operation: string;
        }[];
      })[];
      /** Number of flips in groups that are not listed. */
      unlisted: number;
      /** Limits without recorded usage, because they were not active under this name. Their usage was counted from the decisions of this report, starting from zero. */
      counted: {
        policy: string;
        limit: string;
        decisions: number;
      }[];
      /** Value of `before` to continue with, if the limit or the time limit of a request was reached; null if the range is complete. */
      next: number | null;
    };
  };
  "GET /v1/policies/{id}/versions": {
    query: {
      /** Maximum number of items on a page; a page with large items can have fewer. */
      limit?: number | undefined;
      /** `next_cursor` of the previous page. */
      cursor?: string | undefined;
      /** For old clients. Use `cursor` instead, which stays fast and does not skip items. */
      offset?: number | undefined;
    };
    body: never;
    response: {
      versions: ({
        /** Number of the version in `definition`. */
        version: number;
        /** The policy as JSON, with the members that it has in YAML. */
        definition: Record<string, unknown>;
        /** The policy as its author wrote it, byte for byte. Null if it was sent as JSON or together with other policies, or comes from a policy source. */
        yaml: string | null;
        /** SHA-256 of the definition's canonical JSON, hex. */
        digest: string;
        /** Id of the key that created the version; null if a policy source did. */
        created_by: string | null;
        active: boolean;
        created_at: string;
      })[];
      next_cursor: string | null;
    };
  };
  "POST /v1/policies/check": {
    query: never;
    body: {
      /** Policies as YAML, one or more documents. Can be faulty. */
      yaml: string;
      /** Tests of these policies, in the format of a `_test.yaml` file. */
      tests?: string | undefined;
    };
    response: {
      /** Empty if the policies can be stored. */
      faults: ({
        /** From 1; null if the fault has no position. */
        line: number | null;
        /** From 1; null if the fault has no position. */
        column: number | null;
        /** One sentence for people. */
        detail: string;
      })[];
      /** The policies can be stored, but probably do not do what their author intended. */
      warnings: ({
        /** From 1; null if the fault has no position. */
        line: number | null;
        /** From 1; null if the fault has no position. */
        column: number | null;
        /** One sentence for people. */
        detail: string;
      })[];
      /** The policies of the text. Empty if it has a fault. */
      policies: ({
        policy: string;
        /** The active version, or the newest if none is active; null for a new policy. */
        compared_with: number | null;
        /** At most 200. */
        changes: ({
          kind: "policy_changed" | "limit_added" | "limit_removed" | "limit_changed" | "rule_added" | "rule_removed" | "rule_changed" | "rule_moved";
          rule: string | null;
          /** Position among the rules, from 1. */
          before: number | null;
          /** Position among the rules, from 1. */
          after: number | null;
          fields: {
            field: string;
            before: unknown;
            after: unknown;
          }[];
          /** One sentence for people. */
          summary: string;
        })[];
        /** Changes that are not listed. */
        more_changes: number;
      })[];
      tests: {
        /** Faults of the tests' text. No test runs if there is a fault. */
        faults: ({
          /** From 1; null if the fault has no position. */
          line: number | null;
          /** From 1; null if the fault has no position. */
          column: number | null;
          /** One sentence for people. */
          detail: string;
        })[];
        /** Cases that passed. */
        passed: number;
        /** Cases that failed. */
        failed: number;
        /** At most 500 cases, in the order in which the test file lists them. */
        results: ({
          name: string;
          /** From 1; null if the fault has no position. */
          line: number | null;
          /** From 1; null if the fault has no position. */
          column: number | null;
          effect: "allow" | "deny" | "require_approval" | null;
          /** What differs; null if the case passed. */
          failure: string | null;
        })[];
      } | null;
      /** Named values of the policies (`let`, `data` and `facts`), and the attributes that they declare. Empty if the text has a fault. */
      variables: {
        name: string;
        /** Such as `a string or null`. */
        type: string;
      }[];
      /** Tools that policies declare or name without wildcards. */
      tools: ({
        tool: string;
        /** Null for every operation. */
        operation: string | null;
        /** Declared parameters. */
        params: {
          name: string;
          /** Such as `a string or null`. */
          type: string;
        }[];
      })[];
    };
  };
  "POST /v1/policies/dry-run": {
    query: never;
    body: {
      /** The candidate as JSON, with the members that it has in YAML. */
      policy?: Record<string, unknown> | undefined;
      /** The candidates as YAML instead; one or more documents. */
      yaml?: string | undefined;
      actions: ({
        agent_id: string;
        tool: string;
        operation: string;
        params?: Record<string, unknown> | undefined;
        context?: Record<string, unknown> | undefined;
      })[];
      /** Decides with the candidates only. Otherwise they replace the active policies of the same names, or are added to them. */
      alone?: boolean | undefined;
      /** Time to decide at. Default: now. */
      now?: string | undefined;
      /** The key or user that submits the action. Defaults: null or empty, and test for key_id. */
      principal?: {
        /** Id of the key. */
        key_id?: string | undefined;
        /** Name of the key. */
        name?: string | undefined;
        /** Agent that the key is bound to. */
        agent_id?: string | null | undefined;
        /** The user who owns the key, as `user:<id>`. */
        owner?: string | null | undefined;
        /** Verified claims of the agent's token. */
        claims?: Record<string, unknown> | undefined;
        /** Groups of the key or the user. Default: none. */
        groups?: string[] | undefined;
        /** Roles of the user. Default: none. */
        roles?: string[] | undefined;
      } | undefined;
      /** Attributes of the agent. */
      agent?: {
        /** agent_groups. Default: none. */
        groups?: string[] | undefined;
        /** agent_metadata. Default: {}. */
        metadata?: Record<string, unknown> | undefined;
      } | undefined;
      /** Values of facts, by name. For an absent fact, the source does not answer. */
      facts?: Record<string, unknown> | undefined;
    };
    response: {
      /** Digest of the set that includes the candidates. */
      policy_set: string | null;
      results: {
        current: Record<string, unknown>;
        candidate: Record<string, unknown>;
        /** Whether the effect or the requirements of the approval differ. */
        changed: boolean;
      }[];
    };
  };
  "POST /v1/policies/import-yaml": {
    query: {
      /** Immediately makes the new version the active one. Also needs policies:activate. */
      activate?: boolean | undefined;
    };
    body: {
      /** One or more YAML documents, separated by `---`. */
      yaml: string;
    };
    response: {
      policies: ({
        id: string;
        name: string;
        version: number;
        outcome: "created" | "updated" | "unchanged";
        /** This version is the active one. */
        active: boolean;
      })[];
      /** Digest of the active set after the import. */
      policy_set: string | null;
      /** Warnings about probable mistakes, such as channels that the configuration does not define. */
      warnings: string[];
    };
  };
  "POST /v1/policies/suggest": {
    query: never;
    body: {
      /** Start of the range. Default: 90 days before now. */
      since?: string | undefined;
      /** Maximum number of decisions that are read, newest first. Default: 20000. */
      limit?: number | undefined;
      /** Minimum number of approvals that support a rule. At most half of this number can come from one agent, or from one key that is bound to no agent. Default: 20. */
      min_approvals?: number | undefined;
      /** Minimum number of different people who approved. Default: 2. */
      min_people?: number | undefined;
      /** Minimum number of different days with approvals. Default: 3. */
      min_days?: number | undefined;
    };
    response: Suggestions;
  };
  "GET /v1/policy-vocabulary": {
    query: never;
    body: never;
    response: {
      /** JSON Schema of a policy. */
      schema: Record<string, unknown>;
      /** JSON Schema of the tests of policies. */
      test_schema: Record<string, unknown>;
      /** Variables of every condition, and their members. */
      variables: {
        name: string;
        /** Such as `a string or null`. */
        type: string;
      }[];
      /** Functions, methods and macros of conditions. */
      functions: {
        name: string;
        /** Called as `value.name()`. */
        method: boolean;
        /** Numbers of arguments that it accepts. */
        arity: number[];
      }[];
      /** Tools that policies declare or name without wildcards. */
      tools: ({
        tool: string;
        /** Null for every operation. */
        operation: string | null;
        /** Declared parameters. */
        params: {
          name: string;
          /** Such as `a string or null`. */
          type: string;
        }[];
      })[];
      /** Configured channels. */
      channels: string[];
      /** Configured machine reviewers. */
      reviewers: string[];
      /** Configured fact sources. */
      fact_sources: {
        name: string;
        /** Names of the inputs that a read needs. */
        inputs: string[];
      }[];
    };
  };
  "GET /v1/provenance/{hash}": {
    query: never;
    body: never;
    response: {
      /** SHA-256, lowercase hex. */
      hash: string;
      /** Leaf index; the entry's `seq`. */
      index: number;
      type: string;
      at: string;
      /** The entry's bytes, base64: SHA-256(0x00 ‖ bytes) is `hash`. */
      leaf: string;
      entry: Record<string, unknown>;
    };
  };
  "GET /v1/provenance/{hash}/proof": {
    query: {
      /** Use the newest checkpoint that a witness cosigned instead of the current one. */
      witnessed?: boolean | undefined;
    };
    body: never;
    response: {
      /** SHA-256, lowercase hex. */
      leaf_hash: string;
      /** The entry's bytes, base64. */
      leaf: string;
      index: number;
      size: number;
      /** SHA-256, lowercase hex. */
      root: string;
      /** From the leaf to the root (RFC 6962 section 2.1.1). */
      path: string[];
      /** C2SP signed checkpoint of `size` and `root`. */
      checkpoint: string;
      /** The `log_key` entries that the checkpoint covers, each with its inclusion path. A client that pinned an earlier key uses them to verify the key that signed the checkpoint. */
      log_keys: {
        /** The entry's bytes, base64. */
        leaf: string;
        index: number;
        path: string[];
      }[];
      /** Opening of the commitment; null if the entry is not about an action, or the key cannot read the action's parameters (`actions:read`, no redaction). */
      opening: {
        /** SHA-256, lowercase hex. */
        salt: string | null;
        /** Canonical JSON: SHA-256(salt ‖ SHA-256(request)) is the entry's `commitment`. */
        request: string | null;
        /** When salt and request were erased. After that, no one can open the commitment. */
        erased_at: string | null;
      } | null;
    };
  };
  "GET /v1/provenance/{hash}/proof.tlog-proof": {
    query: {
      /** Use the newest checkpoint that a witness cosigned instead of the current one. */
      witnessed?: boolean | undefined;
    };
    body: never;
    response: never;
  };
  "GET /v1/provenance/checkpoint": {
    query: {
      /** Use the newest checkpoint that a witness cosigned instead of the current one. */
      witnessed?: boolean | undefined;
    };
    body: never;
    response: never;
  };
  "GET /v1/provenance/consistency": {
    query: {
      /** Smaller size. */
      first: number;
      /** Larger size, at most the ledger's. */
      second: number;
    };
    body: never;
    response: {
      first: number;
      second: number;
      /** SHA-256, lowercase hex. */
      first_root: string;
      /** SHA-256, lowercase hex. */
      second_root: string;
      /** RFC 6962 section 2.1.2. */
      path: string[];
    };
  };
  "GET /v1/provenance/keys": {
    query: never;
    body: never;
    response: {
      origin: string;
      /** All keys that the log has had, the current one first. */
      keys: ({
        /** C2SP verifier key: pin this. */
        vkey: string;
        algorithm: "ed25519";
        /** SHA-256, lowercase hex. */
        public_key: string;
        /** Index of the `log_key` entry that introduced the key; null for the first key. */
        since: number | null;
        /** For a replaced key, the time until which it also signs; null for the current key. */
        until: string | null;
      })[];
      /** The current C2SP signed checkpoint. */
      checkpoint: string;
      /** The `log_key` entries that the checkpoint covers, each with its inclusion path. A client that pinned an earlier key uses them to verify the key that signed the checkpoint. */
      log_keys: {
        /** The entry's bytes, base64. */
        leaf: string;
        index: number;
        path: string[];
      }[];
    };
  };
  "POST /v1/replay": {
    query: never;
    body: {
      /** Leaf hash of the decision's entry. */
      hash?: string | undefined;
      action_id?: string | undefined;
      /** A candidate policy: replaces the active policy of the same name, or is added to the set. */
      policy?: Record<string, unknown> | undefined;
      /** Decides with the active set instead. */
      policy_set?: "current" | undefined;
      /** Start of the range, inclusive. Default: one week before `until`. */
      since?: string | undefined;
      /** End of the range, exclusive. Default: the current time. */
      until?: string | undefined;
      /** Maximum number of decisions in a range, newest first; 10,000 when absent. */
      limit?: number | undefined;
      /** `next` of an earlier response: continues where it ended. */
      before?: number | undefined;
      /** Examples of each kind of flip; 3 when absent. */
      examples?: number | undefined;
      /** Candidates as YAML, one or more documents. */
      yaml?: string | undefined;
      /** Decides with only the candidates. Otherwise they replace active policies of the same name or are added to them. */
      alone?: boolean | undefined;
      /** The candidates replace all policies that came from policy sources, such as a folder. Policies that were created over the API stay, unless a candidate has the same name. */
      replace_sources?: boolean | undefined;
    };
    response: Replay | Backtest;
  };
  "POST /v1/replay/progress": {
    query: never;
    body: {
      /** A candidate policy: replaces the active policy of the same name, or is added to the set. */
      policy?: Record<string, unknown> | undefined;
      /** Decides with the active set instead. */
      policy_set?: "current" | undefined;
      /** Start of the range, inclusive. Default: one week before `until`. */
      since?: string | undefined;
      /** End of the range, exclusive. Default: the current time. */
      until?: string | undefined;
      /** Maximum number of decisions in a range, newest first; 10,000 when absent. */
      limit?: number | undefined;
      /** `next` of an earlier response: continues where it ended. */
      before?: number | undefined;
      /** Examples of each kind of flip; 3 when absent. */
      examples?: number | undefined;
      /** Candidates as YAML, one or more documents. */
      yaml?: string | undefined;
      /** Decides with only the candidates. Otherwise they replace active policies of the same name or are added to them. */
      alone?: boolean | undefined;
      /** The candidates replace all policies that came from policy sources, such as a folder. Policies that were created over the API stay, unless a candidate has the same name. */
      replace_sources?: boolean | undefined;
    };
    response: never;
  };
  "GET /v1/rotas": {
    query: never;
    body: never;
    response: {
      rotas: Rota[];
    };
  };
  "GET /v1/session": {
    query: never;
    body: never;
    response: {
      user: User;
      /** All scopes that the user has now. */
      scopes: string[];
      session: Session;
    };
  };
  "DELETE /v1/session": {
    query: never;
    body: never;
    response: never;
  };
  "POST /v1/session/passkey": {
    query: never;
    body: {
      /** `PublicKeyCredential.toJSON()` of `navigator.credentials.get`. */
      response: {
        id: string;
        rawId: string;
        type: "public-key";
        response: {
          clientDataJSON: string;
          authenticatorData: string;
          signature: string;
        };
        clientExtensionResults: Record<string, unknown>;
      };
    };
    response: {
      user: User;
      session_id: string;
      /** For the header `Assent-Session` of every request with the session's cookie. */
      page_token: string;
    };
  };
  "POST /v1/session/passkey/options": {
    query: never;
    body: never;
    response: {
      options: Record<string, unknown>;
    };
  };
  "POST /v1/session/terminal": {
    query: never;
    body: {
      /** 32 random bytes of the terminal, base64url. */
      verifier: string;
    };
    response: {
      user: User;
      session_id: string;
      /** For the header `Assent-Session` of every request with the session's cookie. */
      page_token: string;
    };
  };
  "POST /v1/session/terminal/confirm": {
    query: never;
    body: {
      /** SHA-256 of the terminal's verifier, base64url. The terminal's link has it. */
      challenge: string;
      /** What the terminal shows, typed by the user. */
      code: string;
      /** Required if the user has a passkey for this address. */
      response?: {
        id: string;
        rawId: string;
        type: "public-key";
        response: {
          clientDataJSON: string;
          authenticatorData: string;
          signature: string;
        };
        clientExtensionResults: Record<string, unknown>;
      } | undefined;
    };
    response: {
      /** Time until which the terminal can sign in, once. */
      expires_at: string;
    };
  };
  "POST /v1/session/terminal/confirm/options": {
    query: never;
    body: {
      /** SHA-256 of the terminal's verifier, base64url. The terminal's link has it. */
      challenge: string;
      /** What the terminal shows, typed by the user. */
      code: string;
    };
    response: {
      /** Options for `navigator.credentials.get`; null if the user has no passkey for this address. */
      options: Record<string, unknown> | null;
    };
  };
  "GET /v1/sign-in-methods": {
    query: never;
    body: never;
    response: {
      /** Scheme, host and port where people sign in; null if no one can sign in. */
      origin: string | null;
      passkey: {
        available: boolean;
        /** Why passkeys cannot be used; null if they can. */
        reason: string | null;
      };
      providers: {
        id: string;
        name: string;
        /** Path that starts the sign-in; takes `return_to`. */
        url: string;
      }[];
    };
  };
  "GET /v1/sign-in/{provider}": {
    query: {
      /** Path of this service to open after the sign-in. Any other value means `/`. */
      return_to?: string | undefined;
    };
    body: never;
    response: never;
  };
  "GET /v1/sign-in/{provider}/callback": {
    query: {
      code?: string | undefined;
      state?: string | undefined;
      iss?: string | undefined;
      error?: string | undefined;
    };
    body: never;
    response: never;
  };
  "POST /v1/sign-in/{provider}/logout": {
    query: never;
    body: never;
    response: never;
  };
  "GET /v1/stop": {
    query: never;
    body: never;
    response: {
      /** Active stops that this key can see, oldest first. */
      stops: Stop[];
    };
  };
  "POST /v1/stop": {
    query: never;
    body: {
      /** Recorded permanently in the ledger. */
      reason: string;
      /** Stops only these agents. Glob: `*` matches any characters, `?` one character. Ignores case. */
      agent?: string | undefined;
      /** Stops only the use of these tools. Glob: `*` matches any characters, `?` one character. Ignores case. */
      tool?: string | undefined;
      /** Name of a policy. Stops only actions that its rules or limits decide. */
      policy?: string | undefined;
      /** When the stop expires. Default: never. */
      until?: string | undefined;
    };
    response: Stop;
  };
  "GET /v1/stop/{id}": {
    query: never;
    body: never;
    response: Stop;
  };
  "POST /v1/stop/{id}/lift": {
    query: never;
    body: {
      /** Recorded permanently in the ledger. */
      reason?: string | undefined;
    };
    response: Stop;
  };
  "GET /v1/suggested-rules": {
    query: never;
    body: never;
    response: {
      suggested_rules: SuggestedRule[];
    };
  };
  "POST /v1/suggested-rules/{policy}/flag": {
    query: never;
    body: {
      /** An action that the rule allowed. */
      action_id: string;
      /** Recorded in the ledger. */
      reason: string;
    };
    response: SuggestedRule;
  };
  "POST /v1/suggested-rules/{policy}/restore": {
    query: never;
    body: {
      /** Recorded in the ledger. */
      reason: string;
    };
    response: SuggestedRule;
  };
  "GET /v1/users": {
    query: {
      status?: "live" | "ended" | undefined;
      /** Maximum number of items on a page; a page with large items can have fewer. */
      limit?: number | undefined;
      /** `next_cursor` of the previous page. */
      cursor?: string | undefined;
      /** For old clients. Use `cursor` instead, which stays fast and does not skip items. */
      offset?: number | undefined;
    };
    body: never;
    response: {
      users: UserDetails[];
      next_cursor: string | null;
    };
  };
  "POST /v1/users": {
    query: never;
    body: {
      /** Display name. It does not identify a user: two users can have the same name. */
      name: string;
      /** The user has the scopes of all of these roles. */
      roles?: ("viewer" | "approver" | "break_glass" | "policy_author" | "key_manager" | "auditor" | "admin")[] | undefined;
      groups?: string[] | undefined;
    };
    response: {
      user: User;
      link: {
        /** Give it only to this person. It is shown only once, and works only once. */
        url: string;
        expires_at: string;
      };
    };
  };
  "GET /v1/users/{id}": {
    query: never;
    body: never;
    response: UserDetails;
  };
  "PATCH /v1/users/{id}": {
    query: never;
    body: {
      /** Display name. It does not identify a user: two users can have the same name. */
      name?: string | undefined;
      /** The user has the scopes of all of these roles. */
      roles?: ("viewer" | "approver" | "break_glass" | "policy_author" | "key_manager" | "auditor" | "admin")[] | undefined;
      groups?: string[] | undefined;
    };
    response: User;
  };
  "GET /v1/users/{id}/delegates": {
    query: {
      /** Maximum number of items on a page; a page with large items can have fewer. */
      limit?: number | undefined;
      /** `next_cursor` of the previous page. */
      cursor?: string | undefined;
      /** For old clients. Use `cursor` instead, which stays fast and does not skip items. */
      offset?: number | undefined;
    };
    body: never;
    response: {
      /** Users to whom this user can delegate, newest first. */
      delegates: {
        id: string;
        name: string;
      }[];
      /** Groups and rotas that a delegation of the user can name. */
      groups: string[];
      next_cursor: string | null;
    };
  };
  "POST /v1/users/{id}/delegations": {
    query: never;
    body: {
      /** Id of the user who approves on your behalf. Must be an approver. */
      to: string;
      /** Your groups and rotas that votes count for. Default: all. */
      groups?: string[] | undefined;
      /** Globs of the agents that it covers. Default: all. */
      agents?: string[] | undefined;
      /** Globs of the tools that it covers. Default: all. */
      tools?: string[] | undefined;
      /** RFC 3339 time. Default: now. */
      starts_at?: string | undefined;
      /** RFC 3339, at most 90 days after the start. */
      until: string;
      /** Recorded in the ledger. */
      comment?: string | undefined;
    };
    response: Delegation;
  };
  "GET /v1/users/{id}/devices": {
    query: never;
    body: never;
    response: {
      /** The `applicationServerKey` with which browsers subscribe, in base64url. */
      public_key: string;
      /** Newest first. */
      devices: Device[];
      /** Channels of the configuration that notify this user through `notify-push`. */
      channels: string[];
    };
  };
  "POST /v1/users/{id}/devices": {
    query: never;
    body: {
      /** URL at the browser's push service. */
      endpoint: string;
      keys: {
        /** Uncompressed point on P-256, in base64url. */
        p256dh: string;
        /** 16 bytes, in base64url. */
        auth: string;
      };
      /** Sent by browsers. Not used. */
      expirationTime?: number | null | undefined;
    };
    response: Device;
  };
  "DELETE /v1/users/{id}/devices/{device_id}": {
    query: never;
    body: never;
    response: never;
  };
  "POST /v1/users/{id}/devices/{device_id}/test": {
    query: never;
    body: never;
    response: {
      /** `accepted`: the push service of the browser accepted the notification and delivers it. `refused`: it did not. `ended`: the subscription has ended, and the device was removed. `unreachable`: there was no answer. */
      outcome: "accepted" | "refused" | "ended" | "unreachable";
      /** HTTP status of the push service's answer. */
      status: number | null;
      /** Why it was not accepted; null if it was. Contains the push service's own words, unless `push.allow_private` is set. */
      reason: string | null;
    };
  };
  "POST /v1/users/{id}/end": {
    query: never;
    body: {
      /** Recorded in the ledger. */
      reason?: string | undefined;
    };
    response: {
      user: User;
      /** Ids of keys that the user created or owned. */
      revoked_keys: string[];
    };
  };
  "POST /v1/users/{id}/link": {
    query: never;
    body: never;
    response: {
      user: User;
      link: {
        /** Give it only to this person. It is shown only once, and works only once. */
        url: string;
        expires_at: string;
      };
    };
  };
  "POST /v1/users/{id}/passkeys": {
    query: never;
    body: {
      /** `PublicKeyCredential.toJSON()` of `navigator.credentials.create`. */
      response: {
        id: string;
        rawId: string;
        type: "public-key";
        response: {
          clientDataJSON: string;
          attestationObject: string;
        };
        clientExtensionResults: Record<string, unknown>;
      };
      /** For lists, e.g. `YubiKey`. */
      name?: string | undefined;
      /** Required if the user has a passkey for this address. */
      confirmation?: {
        id: string;
        rawId: string;
        type: "public-key";
        response: {
          clientDataJSON: string;
          authenticatorData: string;
          signature: string;
        };
        clientExtensionResults: Record<string, unknown>;
      } | undefined;
    };
    response: User;
  };
  "POST /v1/users/{id}/passkeys/{passkey_id}/remove": {
    query: never;
    body: {
      /** Required if the user has a passkey for this address. */
      confirmation?: {
        id: string;
        rawId: string;
        type: "public-key";
        response: {
          clientDataJSON: string;
          authenticatorData: string;
          signature: string;
        };
        clientExtensionResults: Record<string, unknown>;
      } | undefined;
    };
    response: User;
  };
  "POST /v1/users/{id}/passkeys/{passkey_id}/remove/options": {
    query: never;
    body: never;
    response: {
      /** Options for `navigator.credentials.get`; null if the user has no passkey for this address. */
      options: Record<string, unknown> | null;
    };
  };
  "POST /v1/users/{id}/passkeys/options": {
    query: never;
    body: never;
    response: {
      options: Record<string, unknown>;
      /** Options for `navigator.credentials.get`; null if the user has no passkey for this address. */
      confirmation: Record<string, unknown> | null;
    };
  };
  "POST /v1/users/{id}/recovery-codes": {
    query: never;
    body: {
      /** Required if the user has a passkey for this address. */
      confirmation?: {
        id: string;
        rawId: string;
        type: "public-key";
        response: {
          clientDataJSON: string;
          authenticatorData: string;
          signature: string;
        };
        clientExtensionResults: Record<string, unknown>;
      } | undefined;
    };
    response: {
      recovery_codes: string[];
    };
  };
  "POST /v1/users/{id}/recovery-codes/options": {
    query: never;
    body: never;
    response: {
      /** Options for `navigator.credentials.get`; null if the user has no passkey for this address. */
      options: Record<string, unknown> | null;
    };
  };
  "POST /v1/users/{id}/resume": {
    query: never;
    body: never;
    response: User;
  };
  "GET /v1/users/{id}/rights": {
    query: never;
    body: never;
    response: {
      groups: string[];
      may_approve: boolean;
      /** The principal can approve actions that meet at least one of these limits. Null if it can approve all actions, or none. */
      limits: ({
        agents: string[] | null;
        tools: string[] | null;
        /** Other limits that an action must also meet, such as the limits of the user who made the key. */
        also: ({
          agents: string[] | null;
          tools: string[] | null;
        })[];
      })[] | null;
      /** Principals of the users on whose behalf they can approve now. */
      delegators: string[];
    };
  };
  "GET /v1/users/{id}/sessions": {
    query: never;
    body: never;
    response: {
      sessions: Session[];
    };
  };
  "DELETE /v1/users/{id}/sessions": {
    query: never;
    body: never;
    response: never;
  };
  "DELETE /v1/users/{id}/sessions/{session_id}": {
    query: never;
    body: never;
    response: never;
  };
  "POST /v1/votes": {
    query: never;
    body: {
      nonce: string;
      /** In the order in which the approver sees them. */
      votes: ({
        action_id: string;
        /** true approves; false rejects. */
        approve: boolean;
        /** Recorded in the ledger, and signed. */
        reason?: string | undefined;
        /** true: approves in an emergency without other approvers (break-glass). Only for a signed-in user with the scope `approvals:break_glass`, and with a `reason`; opens a review. */
        break_glass?: boolean | undefined;
        /** Grants later actions of the same agent, tool and operation together with the approval. The scope must cover this action. */
        grant?: {
          /** Time from now to the end of the grant, such as 30m or 8h. */
          for: string;
          /** Maximum number of actions that the grant covers. */
          count: number;
          /** Condition in CEL over what policies can read, such as `params.repo == "web"`. Absent: covers every request. Stays in the ledger forever. */
          scope?: string | undefined;
          /** Default: no cap on a sum. */
          sum?: {
            /** CEL expression with a number as its value, such as `params.amount`. */
            of: string;
            /** Maximum sum over all uses. */
            at_most: number;
          } | undefined;
          /** true: a failed result of a use ends the grant. Default: false. */
          ends_on_failure?: boolean | undefined;
        } | undefined;
      })[];
      /** `toJSON()` of the result of `navigator.credentials.get`. */
      response: {
        id: string;
        response: {
          authenticatorData: string;
          clientDataJSON: string;
          signature: string;
        };
      };
    };
    response: {
      /** In the order of the votes. */
      results: ({
        action_id: string;
        status: "allowed" | "denied" | "pending_approval" | "approved" | "expired" | "cancelled" | "executing" | "unknown" | "succeeded" | "failed" | null;
        /** The grant that the vote created. */
        grant_id: string | null;
        /** Why it was refused. */
        error: {
          code: string;
          detail: string;
        } | null;
      })[];
    };
  };
  "POST /v1/votes/challenge": {
    query: never;
    body: {
      /** In the order in which the approver sees them. */
      votes: ({
        action_id: string;
        /** true approves; false rejects. */
        approve: boolean;
        /** Recorded in the ledger, and signed. */
        reason?: string | undefined;
        /** true: approves in an emergency without other approvers (break-glass). Only for a signed-in user with the scope `approvals:break_glass`, and with a `reason`; opens a review. */
        break_glass?: boolean | undefined;
        /** Grants later actions of the same agent, tool and operation together with the approval. The scope must cover this action. */
        grant?: {
          /** Time from now to the end of the grant, such as 30m or 8h. */
          for: string;
          /** Maximum number of actions that the grant covers. */
          count: number;
          /** Condition in CEL over what policies can read, such as `params.repo == "web"`. Absent: covers every request. Stays in the ledger forever. */
          scope?: string | undefined;
          /** Default: no cap on a sum. */
          sum?: {
            /** CEL expression with a number as its value, such as `params.amount`. */
            of: string;
            /** Maximum sum over all uses. */
            at_most: number;
          } | undefined;
          /** true: a failed result of a use ends the grant. Default: false. */
          ends_on_failure?: boolean | undefined;
        } | undefined;
      })[];
    };
    response: {
      /** Send it with the votes. Accepted once, in this session. */
      nonce: string;
      /** Time until which the votes must be sent. */
      expires_at: string;
      /** What is signed, in order. */
      statements: ({
        action_id: string;
        /** SHA-256(salt ‖ request hash). */
        commitment: string;
        /** Leaf hash of the entry that made the action pending. */
        decision: string;
        /** The grant to create with the vote; null if there is none. */
        grant: {
          /** Maximum number of uses. */
          count: number;
          /** Whether a failed result of a use ends the grant. */
          ends_on_failure: boolean;
          /** Milliseconds from the vote to the end of the grant. */
          for_ms: number;
          /** CEL over the request; null covers every request. */
          scope: string | null;
          /** Maximum sum over all uses. */
          sum: {
            /** CEL expression with a number as its value. */
            of: string;
            at_most: number;
          } | null;
        } | null;
        /** The nonce. */
        nonce: string;
        /** Origin of the log. */
        origin: string;
        /** Digest of the actions that remain after the vote on a plan; null unless the vote is part of one. */
        plan: string | null;
        /** Salted commitment to the preview of the rule; null if the rule has no preview. */
        preview: string | null;
        /** Digest of the questions to the agent and its answers; null if there are none. */
        questions: string | null;
        /** The reason given. */
        reason: string | null;
        /** The approver's principal. */
        user: string;
        vote: "approve" | "deny" | "break_glass";
      })[];
      /** Options for `navigator.credentials.get`; binary members are base64url. */
      options: Record<string, unknown>;
    };
  };
}
