import type { JsonObject } from "../json.ts";

/** Names the meaning of a policy set: a set of another format is refused, because a decision must come out the same when it is replayed. */
export const POLICY_SET_FORMAT = "assent-policy-set/1";

export type Effect = "allow" | "deny" | "require_approval";
export type Risk = "low" | "medium" | "high" | "critical";

/** Why a decision came out as it did. Stable: programs match on it. */
export type ReasonCode =
  | "POLICY_RULE"
  | "NO_MATCHING_RULE"
  | "NO_ACTIVE_POLICY"
  | "CONDITION_ERROR"
  | "CONDITION_LIMIT"
  | "LIMIT_EXCEEDED"
  | "AGENT_NOT_REGISTERED"
  | "AGENT_SUSPENDED"
  | "TOOL_NOT_ALLOWED"
  | "KEY_ENDED"
  | "STOPPED"
  | "NO_LONGER_ALLOWED"
  | "MORE_APPROVALS_NEEDED"
  | "EARLIER_REJECTION";

/** How a `require_approval` rule asks. Durations are text (`90s`, `30m`, `1h`, `7d`) as written in the YAML. */
export interface ApprovalTerms {
  quorum?: number;
  expires_in?: string;
  valid_for?: string;
  /** Or `none`. */
  rejection_holds?: string;
  notify?: string[];
  /** Members of the request that approvers see first, such as `params.amount`. */
  show?: string[];
}

/** One rule as written. An absent matcher matches everything. Matchers are globs (`*`, `?`). */
export interface RuleDocument {
  name: string;
  description?: string;
  tool?: string | string[];
  operation?: string | string[];
  agent?: string | string[];
  when?: string;
  effect: Effect;
  risk?: Risk;
  reason?: string;
  approval?: ApprovalTerms;
}

/** At most `count` matching actions, or at most `at_most` as the sum of `sum`, for each `per`, in a window. */
export interface LimitDocument extends Omit<RuleDocument, "effect"> {
  /** CEL, or `key` for the submitting key. Absent: all together. */
  per?: string;
  count?: number;
  /** CEL. */
  sum?: string;
  at_most?: number;
  window: string;
  time_zone?: string;
  /** Deny when absent. */
  effect?: "deny" | "require_approval";
}

/** One policy as written, after validation: the same shape as the YAML (design, section 5). */
export interface PolicyDocument {
  policy: string;
  description?: string;
  mode?: "enforce" | "shadow";
  /** Names match as they are written; without regard to case when absent. */
  case_sensitive?: boolean;
  applies_to?: { tools?: string[]; agents?: string[] };
  rules: RuleDocument[];
  limits?: LimitDocument[];
  metadata?: JsonObject;
}

/** A policy version inside a set. */
export interface PolicySetMember {
  policy: string;
  version: number;
  definition: PolicyDocument;
}

/** All active policy versions, sorted by name. Its canonical JSON is what the digest addresses. */
export interface PolicySetDocument {
  format: typeof POLICY_SET_FORMAT;
  policies: PolicySetMember[];
}

/** What was used of one limit before the action. Whose use it is stands in the request. */
export interface LimitFact {
  policy: string;
  limit: string;
  /** Digest of what the limit counts, and for whom: a limit of the same name that counts something else is another one. */
  basis: string;
  /** Actions, or millionths of a sum. */
  used: number;
}

/**
 * What the decision may depend on besides the request, the policy set and the clock. Recorded with the decision, so
 * that replay sees the same.
 */
export interface Facts {
  principal: { key_id: string; name: string; agent_id: string | null; owner: string | null };
  /** Present when the agent is registered. */
  agent?: { suspended: boolean; allowed_tools: string[] | null };
  require_registered_agents?: boolean;
  /** Present when stops hold that are about this agent and this tool. */
  stops?: StopFact[];
  /** Present when the key that submitted the action has been revoked or has expired since. */
  key_ended?: true;
  /** Commit that the policy set came from, where it came from git. */
  policy_commit?: string;
  /** Present when limits match the action. */
  limits?: LimitFact[];
  /** How long a rejection holds where the rule does not say. Present when the configuration sets another default. */
  rejection_holds_ms?: number;
  /** Present when the policies require approval, and a person rejected the same request. */
  rejection?: RejectionFact;
}

/** A person's rejection of an earlier action with the same request. */
export interface RejectionFact {
  action_id: string;
  /** Principal. */
  approver: string;
  /** What the approver wrote: one line of at most 500 characters. Null for nothing. */
  comment: string | null;
  /** RFC 3339. */
  at: string;
  until: string;
}

/** A stop that holds. `policy` null: it stops the action whatever policies say. */
export interface StopFact {
  id: string;
  policy: string | null;
  /** When it ends by itself, RFC 3339; null when never. */
  until: string | null;
}

/** Facts as the decision's entry holds them. */
export interface RecordedFacts extends Facts {
  /** Commitment to what was used of limits. Present when limits match the action, from version 3 of the entry on; `limits` is absent then. */
  past?: string;
}

/** What one policy in shadow mode would have said. */
export interface ShadowOutcome {
  policy: string;
  policy_version: number;
  rule: string | null;
  effect: Effect;
  reason_code: ReasonCode;
}

/** What is asked of whoever approves. */
export interface RequiredApproval {
  quorum: number;
  /** How long it may be approved. */
  expires_in_ms: number;
  /** How long it may start once it is approved. Absent in entries from before it was known. */
  valid_for_ms: number;
  /** How long a rejection refuses the same request; 0: not at all. Absent in entries from before it was known. */
  rejection_holds_ms: number;
  notify: string[];
}

export interface Decision {
  effect: Effect;
  reason: string;
  reason_code: ReasonCode;
  risk_level: Risk | null;
  policy: string | null;
  policy_version: number | null;
  rule: string | null;
  /** Set exactly when `effect` is `require_approval`. */
  approval: RequiredApproval | null;
  shadow: ShadowOutcome[];
}
