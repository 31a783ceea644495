import type { ActionStatus } from "../actions.ts";
import type { ApproverPlan, OversightMode } from "../approvers.ts";
import type { JsonObject, JsonValue } from "../json.ts";
import type { RequiredReviewer } from "../reviews.ts";

/**
 * Version of the policy set's semantics. Other versions are rejected, because a replay must compute the same decision.
 */
export const POLICY_SET_FORMAT = "assent-policy-set/1";

export type Effect = "allow" | "deny" | "require_approval";
export type Risk = "low" | "medium" | "high" | "critical";

/** Reason of a decision. Stable, because programs match on it. */
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
  | "EARLIER_REJECTION"
  | "REVIEWER_DENIED"
  | "OBLIGATION_UNMET"
  | "GRANTED";

/** `count` people of the group. Default 1. Without `group`, people of any group or none. */
export interface ApproverTerms {
  group?: string;
  count?: number;
}

/** Approval terms of a `require_approval` rule. Durations are written as in YAML: `90s`, `30m`, `1h`, `7d`. */
export interface ApprovalTerms {
  /** Number of people of any group or none. Excludes `approvers` and `stages`. */
  quorum?: number;
  approvers?: ApproverTerms[];
  /** Stages that are met in order. Excludes `approvers`. */
  stages?: { after?: string; approvers: ApproverTerms[]; notify?: string[] }[];
  /** Whether members of the requester's groups cannot approve. */
  exclude_requester_groups?: boolean;
  /** `maker_checker` if absent. */
  mode?: OversightMode;
  /** Each vote must be signed with a passkey. */
  signature?: "passkey";
  expires_in?: string;
  valid_for?: string;
  /** A duration or `none`. */
  rejection_holds?: string;
  /** The largest grant that can cover the action: duration and number of uses. If absent, no grant can cover it. */
  grants?: { for: string; count: number };
  /** Machine reviewers that receive the request. `may_approve` lets a reviewer approve in place of a person. */
  reviewers?: { name: string; may_approve?: boolean }[];
  /** Parameters that approvers can change, with their bounds by path. Default: none. */
  editable?: string[] | Record<string, Omit<EditableParameter, "path">>;
  notify?: string[];
  /** Sentence for approvers, with values such as `{params.amount}`. */
  preview?: string;
  /** Members of the request that approvers see first, such as `params.amount`. */
  show?: string[];
}

/** What a rule does with parameters, by path, such as `params.amount`. */
export interface ObligationTerms {
  /** Parameters whose values people do not see. Applies to all actions that the matchers of the rule match. */
  redact?: string[];
  set?: Record<string, string | number | boolean>;
  clamp?: Record<string, { min?: number; max?: number }>;
}

/** A rule as written. An absent matcher matches everything. Matchers are globs (`*`, `?`). */
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
  obligations?: ObligationTerms;
}

/**
 * Limits matching actions in a window, for each value of `per`: at most `count` actions, or at most `at_most` as the
 * total of `sum`.
 */
export interface LimitDocument extends Omit<RuleDocument, "effect" | "obligations"> {
  /** CEL, or `key` for the submitting key. If absent, all actions share one count. */
  per?: string;
  count?: number;
  /** CEL. */
  sum?: string;
  at_most?: number;
  window: string;
  time_zone?: string;
  /** `deny` if absent. */
  effect?: "deny" | "require_approval";
}

/** The past actions that the conditions of a policy read as `history`. */
interface HistoryDocument {
  /** Owner of the history: `agent`, `key`, `session`, or a CEL expression whose value separates histories. */
  per: string;
  /** Tools of the actions, as globs. Default: all. */
  tool?: string | string[];
  operation?: string | string[];
  /** Whether the history contains actions that were denied at their submission. */
  include_denied?: boolean;
  window: string;
  time_zone?: string;
  /** Maximum number of actions. If there are more, conditions that read the history fail. */
  max: number;
}

/** A value that conditions read as `facts.NAME`. The service reads it from a fact source before it decides. */
export interface FactDocument {
  /** Name of a configured fact source. */
  source: string;
  /** CEL by the name of the source's input. */
  with?: Record<string, string>;
  /** JSON Schema of the value. Members that it does not name are not read. */
  schema: JsonObject;
}

/** JSON Schemas of trusted attributes, for the static check of conditions. No influence on decisions. */
interface AttributeSchemas {
  /** Of `principal.claims`. */
  claims?: JsonObject;
  agent_metadata?: JsonObject;
}

/** Parameters of a tool, for the static check of conditions. No influence on decisions. */
export interface ToolSchemaDocument {
  tool: string;
  /** If absent, every operation of the tool. */
  operation?: string;
  /** JSON Schema of `params`. */
  params: JsonObject;
}

/** Marks a policy that was suggested from approvals. Its one rule allows actions only in place of this rule. */
export interface SuggestedTerms {
  in_place_of: { policy: string; rule: string };
  /** Largest share of failed results. */
  max_failed?: number;
}

/** A validated policy, with the same shape as the YAML (design, section 5). */
export interface PolicyDocument {
  policy: string;
  description?: string;
  mode?: "enforce" | "shadow";
  /** Whether names match case-sensitively; false when absent. */
  case_sensitive?: boolean;
  applies_to?: { tools?: string[]; agents?: string[] };
  tools?: ToolSchemaDocument[];
  /** Values that conditions read by name: JSON, or `{ cel: … }` for a value that is derived from the request. */
  let?: JsonObject;
  /** Shared data by name, with the values of the service's environment. Conditions read `data.NAME.VALUE`. */
  data?: Record<string, JsonObject>;
  suggested?: SuggestedTerms;
  history?: HistoryDocument;
  /** By name. */
  facts?: Record<string, FactDocument>;
  attributes?: AttributeSchemas;
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

/** All active policy versions, sorted by name. The digest is of its canonical JSON. */
export interface PolicySetDocument {
  format: typeof POLICY_SET_FORMAT;
  policies: PolicySetMember[];
}

/** Usage of one limit before the action. Its subject follows from the request. */
export interface LimitFact {
  policy: string;
  limit: string;
  /** Digest of the limit's expressions. A limit with the same name but another basis is a different limit. */
  basis: string;
  /** Number of actions, or millionths of a sum. */
  used: number;
}

/** A past action as conditions read it. */
export interface PastAction {
  agent: string;
  /** When it was submitted. RFC 3339. */
  at: string;
  /** The members that the policy's conditions read; null if the action was erased. */
  context: JsonObject | null;
  id: string;
  /** Whether the action was ever allowed or approved, so that it might have run. */
  may_have_run: boolean;
  operation: string;
  params: JsonObject | null;
  status: ActionStatus;
  tool: string;
}

/** Why a history is unknown. Conditions that read it then fail. */
export type HistoryFault = "no_session" | "no_value" | "too_large" | "too_many";

/** The history of one policy before the action. */
export interface HistoryFact {
  policy: string;
  /** Digest of the declaration and of the members that conditions read. */
  basis: string;
  /** Newest first. Empty if there is a fault. */
  actions: PastAction[];
  fault: HistoryFault | null;
}

/** What the service knows of the agent and of its key or user, apart from their names. */
export interface Attributes {
  /** Groups that the configuration gives the agent. */
  agent_groups: string[];
  /** `metadata` of the agent's registration; empty if the agent is not registered. */
  agent_metadata: JsonObject;
  /** Groups of the key or the user. */
  groups: string[];
  /** Roles of the user; empty for a key. */
  roles: string[];
}

/**
 * Why the value of a fact is unknown. Conditions that read it then fail.
 *
 * `no_source`: the service has no such source, or it takes other inputs. `no_input`: an input could not be evaluated.
 */
export type SourceFault = "no_source" | "no_input" | "no_answer" | "too_large" | "wrong_type";

/** A value that a fact source returned for the action. */
export interface SourceFact {
  policy: string;
  /** Conditions read it as `facts.NAME`. */
  name: string;
  /** Digest of its declaration and of the named values that its inputs read. */
  basis: string;
  /** When it was read. RFC 3339. */
  at: string;
  /** Null if there is a fault. */
  value: JsonValue;
  fault: SourceFault | null;
}

/**
 * Everything that a decision depends on in addition to the request, the policy set and the clock. Recorded with the
 * decision, so that replay uses the same facts.
 */
export interface Facts {
  principal: {
    key_id: string;
    name: string;
    agent_id: string | null;
    owner: string | null;
    /** Verified claims of the agent's token. Absent if the credential is an API key. */
    claims?: JsonObject;
  };
  /** Present when the agent is registered. */
  agent?: { suspended: boolean; allowed_tools: string[] | null };
  require_registered_agents?: boolean;
  /** Present if the request may no longer change, and a policy that applies to it has obligations. They then deny. */
  final_request?: true;
  /** Present when active stops cover this agent and tool. */
  stops?: StopFact[];
  /** Present if the key that submitted the action has since been revoked or expired. */
  key_ended?: true;
  /** Git commit of the policy set, if it came from git. */
  policy_commit?: string;
  /** The agent's session. Present if the request has a session token. */
  session?: SessionFact;
  /** Present when limits match the action. */
  limits?: LimitFact[];
  /** Present if conditions read the history of their policy. */
  history?: HistoryFact[];
  /** Present when conditions read values of fact sources. */
  sources?: SourceFact[];
  /** Recorded when a policy reads some of them. */
  attributes?: Attributes;
  /**
   * How long a rejection denies duplicate requests if the rule does not say. Present if the configuration changes the
   * default.
   */
  rejection_holds_ms?: number;
  /** Present if the policies require approval and a person rejected the same request. */
  rejection?: RejectionFact;
  /** Present if the policies require approval and this grant covers the action. */
  grant?: GrantFact;
  /**
   * Names of suggested policies in force, which are active and not reverted. A decision records only the one that
   * allowed the action.
   */
  suggested?: string[];
}

/** A session that the service issued for a key. */
export interface SessionFact {
  id: string;
  /** Id of the key that requested the session. */
  issued_by: string;
}

/** A grant that covers an action, and the current standing of its grantor. `limits` contains the usage of the grant. */
export interface GrantFact {
  id: string;
  /** Principal of the grantor. */
  by: string;
  /** RFC 3339. */
  granted_at: string;
  until: string;
  /** Number of uses. */
  count: number;
  /** CEL; null covers every request. */
  scope: string | null;
  sum: { of: string; at_most: number } | null;
  /** Those of the grantor's groups that the rules name. */
  groups: string[];
  /** Whether the grantor is in none of the requester's groups. False if those are unknown. */
  independent: boolean;
  /** Whether the grantor is the person behind the agent. The grant is then signed with a passkey. */
  self: boolean;
}

/** A person's rejection of an earlier action with the same request. */
export interface RejectionFact {
  action_id: string;
  /** Principal. */
  approver: string;
  /** The approver's comment: one line of at most 500 characters. Null if there is none. */
  comment: string | null;
  /** RFC 3339. */
  at: string;
  until: string;
}

/** An active stop. If `policy` is null, it stops the action whatever policies say. */
export interface StopFact {
  id: string;
  policy: string | null;
  /** When the stop expires, RFC 3339; null if never. */
  until: string | null;
}

/** Facts as the decision's entry stores them. */
export interface RecordedFacts extends Facts {
  /** Commitment to the data that the decision read, which replaces `attributes`, `history`, `limits` and `sources`. Present if it read some. */
  past?: string;
}

/** The answer of one policy in shadow mode. */
export interface ShadowOutcome {
  policy: string;
  policy_version: number;
  rule: string | null;
  effect: Effect;
  reason_code: ReasonCode;
}

/** The approval that a decision requires. */
export interface RequiredApproval {
  /** The requirement of each rule. An approval must satisfy all of them. */
  approvers: ApproverPlan[];
  /** `self_confirm` only if every rule allows it. */
  mode: OversightMode;
  /** The smallest number of people that can satisfy `approvers`. */
  quorum: number;
  /** How long the action can be approved. */
  expires_in_ms: number;
  /** How long the action can start after approval. */
  valid_for_ms: number;
  /** The largest grants that can cover the action. Present only if every rule allows grants. */
  grants?: GrantTerms;
  /** Parameters that an approver can change. Present only if every rule has some in common. */
  editable?: EditableParameter[];
  /** Time for which a rejection denies duplicate requests; 0 if it denies none. */
  rejection_holds_ms: number;
  /** Machine reviewers that are called. Present only if rules name some. */
  reviewers?: RequiredReviewer[];
  notify: string[];
}

/** A parameter that an approver can change, and the bounds of its new value. */
export interface EditableParameter {
  max?: number;
  /** Characters. */
  max_length?: number;
  min?: number;
  one_of?: (string | number | boolean)[];
  /** Such as `params.amount`. */
  path: string;
}

/** What the rules require of one parameter. The request that may run satisfies it. */
export interface Obligation {
  max?: number;
  min?: number;
  /** Such as `params.amount`. */
  path: string;
  set?: string | number | boolean;
}

/** The largest grants that rules allow. */
export interface GrantTerms {
  /** Number of uses. */
  count: number;
  /** Time from the grant to its end. Milliseconds. */
  for_ms: number;
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
  /** In order of the paths. Present if the rules have some and the decision is no denial. */
  obligations?: Obligation[];
  shadow: ShadowOutcome[];
}
