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

const RISKS: readonly (Risk | null)[] = [null, "low", "medium", "high", "critical"];

/** Returns the higher of two risks. Null, the risk of a rule that states none, is the lowest. */
export const higherRisk = (a: Risk | null, b: Risk | null): Risk | null =>
  RISKS.indexOf(a) < RISKS.indexOf(b) ? b : a;

/** Reason of a decision. Stable, because programs compare it. A bar has the code of the plugin that contributes it. */
export type ReasonCode = LanguageReason | (string & {});

/** The reasons of the policy language and of the service itself. */
export const LANGUAGE_REASONS = [
  "POLICY_RULE",
  "NO_MATCHING_RULE",
  "NO_ACTIVE_POLICY",
  "CONDITION_ERROR",
  "CONDITION_LIMIT",
  "LIMIT_EXCEEDED",
  "EFFECT_REPEATED",
  "AGENT_NOT_REGISTERED",
  "AGENT_SUSPENDED",
  "TOOL_NOT_ALLOWED",
  "KEY_ENDED",
  "NO_LONGER_ALLOWED",
  "MORE_APPROVALS_NEEDED",
  "EARLIER_REJECTION",
  "REVIEWER_DENIED",
  "OBLIGATION_UNMET",
  "GRANTED",
  "AUTHORITY_UNKNOWN",
  "AUTHORITY_ENDED",
  "AUTHORITY_EXCEEDED",
] as const;
export type LanguageReason = (typeof LANGUAGE_REASONS)[number];

/** Requires `count` people of the group. Default: 1. Without `group`, requires people of any group or none. */
export interface ApproverTerms {
  group?: string;
  count?: number;
}

/**
 * Approval terms of a `require_approval` rule. Durations have the form that they have in YAML: `90s`, `30m`, `1h`,
 * `7d`.
 */
export interface ApprovalTerms {
  /** Number of people of any group or none. Cannot be combined with `approvers` or `stages`. */
  quorum?: number;
  approvers?: ApproverTerms[];
  /** Stages that must be satisfied in order. Cannot be combined with `approvers`. */
  stages?: { after?: string; approvers: ApproverTerms[]; notify?: string[] }[];
  /** Whether members of the requester's groups cannot approve. */
  exclude_requester_groups?: boolean;
  /** Default: `maker_checker`. */
  mode?: OversightMode;
  /** Present if each vote must be signed with a passkey. */
  signature?: "passkey";
  expires_in?: string;
  valid_for?: string;
  /** How long a rejection denies duplicate requests: a duration, or `none`. */
  rejection_holds?: string;
  /** The largest grant that can cover the action: duration and number of uses. Default: no grant can cover it. */
  grants?: { for: string; count: number };
  /** Machine reviewers that receive the request. `may_approve` lets a reviewer approve instead of a person. */
  reviewers?: { name: string; may_approve?: boolean }[];
  /** Parameters that approvers can change: a list of paths, or bounds keyed by path. Default: none. */
  editable?: string[] | Record<string, Omit<EditableParameter, "path">>;
  notify?: string[];
  /**
   * Facts that approvers see and that must have the same value when the action starts, such as `facts.invoice.total`.
   */
  pins?: string[];
  /** Sentence for approvers, with values such as `{params.amount}`. */
  preview?: string;
  /** Members of the request that approvers see first, such as `params.amount`. */
  show?: string[];
}

/** Changes that a rule makes to parameters. Parameters are identified by paths such as `params.amount`. */
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
  /** Template of the business effect, such as `refund/{params.payment}`, or the template with a period. */
  effect_key?: string | EffectKeyDocument;
}

/** The business effect of a rule's actions, which happens at most once in a period. */
export interface EffectKeyDocument {
  key: string;
  /** Period after a success in which the effect is not repeated. Default: `24h`. */
  within?: string;
}

/**
 * A limit on matching actions in a window, for each value of `per`. It permits at most `count` actions, or actions
 * whose `sum` is at most `at_most` in total.
 */
export interface LimitDocument extends Omit<RuleDocument, "effect" | "effect_key" | "obligations"> {
  /** CEL, or `key` for the submitting key. If absent, all actions share one count. */
  per?: string;
  count?: number;
  /** CEL expression for the amount of an action, or `usage.NAME` for an amount that is reported with the result. */
  sum?: string;
  at_most?: number;
  /** With `usage.NAME`: the amount that counts until the result reports the usage. */
  reserve?: number;
  window: string;
  time_zone?: string;
  /** Default: `deny`. */
  effect?: "deny" | "require_approval";
}

/** What a result rule does with an output: passes it on, replaces parts of it, or passes nothing on. */
export type ResultEffect = "allow" | "redact" | "withhold";

/** A rule for what a tool returned. All rules that match count; the strictest effect wins, and labels add up. */
export interface ResultRuleDocument extends Pick<
  RuleDocument,
  "name" | "description" | "tool" | "operation" | "agent" | "reason"
> {
  /** All tests must be true. Without tests, the rule matches every output. */
  match?: {
    pattern?: string | string[];
    /** Bytes. */
    larger_than?: number;
    /** JSON types, or globs of media types. */
    type?: string | string[];
    /** CEL over `result` and the request. */
    when?: string;
  };
  effect: ResultEffect;
  /** With `redact`: members to replace, such as `result.customer.ssn`. `*` stands for every member or item. */
  members?: string[];
  /** With `redact`: replaces what was found. Default: `[redacted]`. */
  replacement?: string;
  /** Added to the session of the action. */
  labels?: string[];
}

/** The past actions that the conditions of a policy read as `history`. */
interface HistoryDocument {
  /** Owner of the history: `agent`, `key`, `session`, or a CEL expression whose value separates histories. */
  per: string;
  /** Globs of the tools whose actions the history contains. Default: all tools. */
  tool?: string | string[];
  operation?: string | string[];
  /** Whether the history contains actions that were denied when they were submitted. */
  include_denied?: boolean;
  window: string;
  time_zone?: string;
  /** Maximum number of actions. If the history has more, conditions that read the history fail. */
  max: number;
  /** Members of results that conditions can read, such as `result.customer_id` (as `h.result.customer_id`). */
  keep?: string[];
}

/** A value that conditions read as `facts.NAME`. The service reads it from a fact source before it decides. */
export interface FactDocument {
  /** Name of a configured fact source. */
  source: string;
  /** Inputs of the source: maps names of inputs to CEL expressions. */
  with?: Record<string, string>;
  /** JSON Schema of the value. Conditions cannot read members that the schema does not declare. */
  schema: JsonObject;
}

/** JSON Schemas of trusted attributes, for the static check of conditions. They do not affect decisions. */
interface AttributeSchemas {
  /** JSON Schema of `principal.claims`. */
  claims?: JsonObject;
  agent_metadata?: JsonObject;
}

/** Parameters of a tool, for the static check of conditions. They do not affect decisions. */
export interface ToolSchemaDocument {
  tool: string;
  /** Operation of the tool. Default: every operation. */
  operation?: string;
  /** JSON Schema of `params`. */
  params: JsonObject;
}

/**
 * Terms of a policy that was suggested from approvals. The policy's only rule allows actions only in place of the rule
 * `in_place_of`.
 */
export interface SuggestedPolicyTerms {
  in_place_of: { policy: string; rule: string };
  /** Maximum share of failed results. */
  max_failed?: number;
}

/** A validated policy, with the same shape as the YAML. */
export interface PolicyDocument {
  policy: string;
  description?: string;
  mode?: "enforce" | "shadow";
  /** Whether names are matched case-sensitively. Default: false. */
  case_sensitive?: boolean;
  applies_to?: { tools?: string[]; agents?: string[] };
  tools?: ToolSchemaDocument[];
  /** Values that conditions read by name: JSON, or `{ cel: … }` for a value that is derived from the request. */
  let?: JsonObject;
  /** Shared data, keyed by name, with the values of the service's environment. Conditions read `data.NAME.VALUE`. */
  data?: Record<string, JsonObject>;
  suggested?: SuggestedPolicyTerms;
  history?: HistoryDocument;
  /** Facts, keyed by name. */
  facts?: Record<string, FactDocument>;
  attributes?: AttributeSchemas;
  rules: RuleDocument[];
  limits?: LimitDocument[];
  results?: ResultRuleDocument[];
  metadata?: JsonObject;
}

/** A policy version in a set. */
export interface PolicySetMember {
  policy: string;
  version: number;
  definition: PolicyDocument;
}

/** All active policy versions, sorted by name. The set's digest is the digest of this document's canonical JSON. */
export interface PolicySetDocument {
  format: typeof POLICY_SET_FORMAT;
  policies: PolicySetMember[];
}

/** Usage of one limit before the action. The request determines the subject of the limit. */
export interface LimitFact {
  policy: string;
  limit: string;
  /** Digest of the limit's expressions. A changed digest starts a new counter, even if the limit's name is the same. */
  basis: string;
  /** Number of actions, or millionths of a sum. */
  used: number;
}

/** A past action as conditions read it. */
export interface PastAction {
  agent: string;
  /** Time of the submission. RFC 3339. */
  at: string;
  /** The members that the policy's conditions read; null if the action was erased. */
  context: JsonObject | null;
  id: string;
  /** Whether the action was ever allowed or approved, and so might have run. */
  may_have_run: boolean;
  operation: string;
  params: JsonObject | null;
  /** The members of the reported result that the history keeps; null if they cannot be read. Absent without `keep`. */
  result?: JsonObject | null;
  status: ActionStatus;
  tool: string;
}

/** The reason why a history is unknown. Conditions that read the history fail. */
export type HistoryFault = "no_session" | "no_value" | "too_large" | "too_many";

/** The history of one policy before the action. */
export interface HistoryFact {
  policy: string;
  /** Digest of the declaration and of the members that conditions read. */
  basis: string;
  /** The past actions, newest first. Empty if there is a fault. */
  actions: PastAction[];
  fault: HistoryFault | null;
}

/** Attributes of the agent and of its key or user, other than their names. */
export interface Attributes {
  /** Groups that the configuration assigns to the agent. */
  agent_groups: string[];
  /** `metadata` of the agent's registration; empty if the agent is not registered. */
  agent_metadata: JsonObject;
  /** Groups of the key or the user. */
  groups: string[];
  /** Roles of the user; empty for a key. */
  roles: string[];
}

/**
 * The reason why the value of a fact is unknown. Conditions that read the fact fail.
 *
 * `no_source`: the service has no such source, or the source has different inputs. `no_input`: an input could not be
 * evaluated. `not_found`: the source has no record for the inputs, and the schema of the fact does not accept null.
 */
export type FactFault = "no_source" | "no_input" | "no_answer" | "not_found" | "too_large" | "wrong_type";

/** A value that a fact source returned for the action. */
export interface SourceFact {
  policy: string;
  /** Name of the fact, which conditions read as `facts.NAME`. */
  name: string;
  /** Digest of the fact's declaration and of the named values that its inputs read. */
  basis: string;
  /** Time when the value was read. RFC 3339. */
  at: string;
  /** The value; null if there is a fault. */
  value: JsonValue;
  fault: FactFault | null;
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
  /** The agent's registration. Present if the agent is registered. */
  agent?: { suspended: boolean; allowed_tools: string[] | null };
  require_registered_agents?: boolean;
  /**
   * Present if the request may no longer change, and a policy that applies to it has obligations. If an obligation
   * would change the request, the request is denied.
   */
  final_request?: true;
  /** Present when bars cover this agent and tool. A decision records only the bar that decided. */
  bars?: Bar[];
  /** Present if the key that submitted the action has since been revoked or expired. */
  key_ended?: true;
  /** Git commit of the policy set, if it came from git. */
  policy_commit?: string;
  /** The agent's session. Present if the request has a session token. */
  session?: SessionFact;
  /** The authority that the request names. Present if it names one. */
  authority?: AuthorityFact;
  /**
   * For each link of `authority`, the facts with which the policies decide for its delegator. Absent if they are unknown;
   * the action is then denied.
   */
  delegators?: Facts[];
  /** Labels of the session, sorted; without a session, of the agent. Present if there are any. */
  labels?: string[];
  /** Usage of limits. Present if limits match the action. */
  limits?: LimitFact[];
  /** The effects of the rules that decide. Present if these rules have an effect key. */
  effects?: EffectFact[];
  /** Past actions that conditions read, one history for each policy. Present if any condition reads a history. */
  history?: HistoryFact[];
  /** Values of fact sources. Present if conditions read them. */
  sources?: SourceFact[];
  /** Attributes of the agent and its principal. Recorded if a policy reads some of them. */
  attributes?: Attributes;
  /**
   * Default of `rejection_holds`, for rules that do not define it. Present if the configuration changes the default.
   */
  rejection_holds_ms?: number;
  /**
   * An earlier rejection. Present if the policies require approval, and a person or a machine reviewer rejected the
   * same request.
   */
  rejection?: RejectionFact;
  /** Present if the policies require approval and this grant covers the action. */
  grant?: GrantFact;
  /**
   * Names of suggested policies in force, which are active and not reverted. A decision records only the policy that
   * allowed the action.
   */
  suggested?: string[];
}

/** The effect key of the rule that decides for its policy, and the action that blocks it. */
export interface EffectFact {
  policy: string;
  rule: string;
  /** An action with the same effect key; null if there is none. */
  blocked_by: {
    action_id: string;
    /** Time of its submission, or of its start. RFC 3339. */
    at: string;
    /** Whether the submitter can see the action, because the same key submitted it. */
    own: boolean;
    status: ActionStatus;
  } | null;
}

/** A session that the service issued for a key. */
export interface SessionFact {
  id: string;
  /** Id of the key that requested the session. */
  issued_by: string;
}

/**
 * The authority that a request names. It never allows anything: the action must be within each link, and the policies
 * must also allow it for each delegator.
 */
export interface AuthorityFact {
  id: string;
  /** The reason why no action may run under the authority; null if it is in force. */
  fault: { code: ReasonCode; reason: string } | null;
  /** The authority and its ancestors, root first. Empty if the authority is unknown. */
  links: AuthorityLink[];
}

/** Maximum sum over the uses of a grant or an authority. */
export interface SumCap {
  /** CEL expression with a number as its value, or usage such as `usage.cost_usd`. */
  of: string;
  at_most: number;
  /** For usage: the amount that counts for an action until its result reports the usage. */
  reserve?: number;
}

/** One authority of a chain: what a delegator lets another agent do. `limits` of the facts contains its usage. */
export interface AuthorityLink {
  id: string;
  /** The agent that gave the authority, and its key, with the key's owner and principal. */
  agent_id: string;
  key_id: string;
  owner: string | null;
  principal: string;
  /** The session in which the authority was given; null if there was none. */
  session: SessionFact | null;
  created_at: string;
  until: string;
  /** Globs of the tools and operations that it covers. */
  tools: string[];
  operations: string[];
  /** Condition in CEL; null covers every request. */
  condition: string | null;
  /** Maximum number of actions under the authority and those below it; null if there is no maximum. */
  count: number | null;
  sum: SumCap | null;
}

/** A grant that covers an action, and the current groups of its grantor. `limits` contains the usage of the grant. */
export interface GrantFact {
  id: string;
  /** Principal of the grantor. */
  by: string;
  /** Display name of the grantor, which identifies no one; null if there is none. */
  by_name?: string | null;
  /** Time when the grant was created. RFC 3339. */
  granted_at: string;
  until: string;
  /** Maximum number of uses. */
  count: number;
  /** Condition in CEL; null covers every request. */
  scope: string | null;
  sum: SumCap | null;
  /** The grantor's groups that the rules accept as approvers. */
  groups: string[];
  /** Whether the grantor is in none of the requester's groups. False if the requester's groups are unknown. */
  independent: boolean;
  /** Whether the grantor is the person behind the agent. If so, the grant is signed with a passkey. */
  self: boolean;
}

/** The rejection of an earlier action with the same request, by a person or a machine reviewer. */
export interface RejectionFact {
  action_id: string;
  /** Principal of the person or machine reviewer. */
  approver: string;
  /** Display name of the approver, which identifies no one; null if there is none. */
  approver_name?: string | null;
  /** The comment: one line of at most 500 characters. Null if there is no comment. */
  comment: string | null;
  /** Time of the rejection. RFC 3339. */
  at: string;
  until: string;
}

/** A denial above all policies. */
export interface Bar {
  /** The `reason_code` of a decision that it denies. */
  code: string;
  /** Id of the resource that caused the bar, for example of a stop. */
  id: string;
  /** Name of a policy: denies only actions for which this policy has an answer. Null denies whatever policies say. */
  policy: string | null;
  reason: string;
}

/** Facts in the form in which the decision's entry records them. */
export interface RecordedFacts extends Facts {
  /**
   * Commitment to the data that the decision read, which replaces `attributes`, `delegators`, `history`, `limits` and
   * `sources`.
   * Present if the decision read any of these.
   */
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
  /** The smallest number of people who can satisfy `approvers`. */
  quorum: number;
  /** Approval timeout, from `expires_in`. Milliseconds. */
  expires_in_ms: number;
  /** Period after the approval in which the action can start, from `valid_for`. Milliseconds. */
  valid_for_ms: number;
  /** The largest grants that can cover the action. Present only if every rule allows grants. */
  grants?: GrantTerms;
  /** Parameters that an approver can change. Present only if all rules share at least one parameter. */
  editable?: EditableParameter[];
  /**
   * How long a rejection denies duplicate requests, from `rejection_holds`; 0 if it does not deny them. Milliseconds.
   */
  rejection_holds_ms: number;
  /** Machine reviewers to call. Present only if the rules have reviewers. */
  reviewers?: RequiredReviewer[];
  notify: string[];
  /** The facts that approvers see and that must not change before the start. Present only if the rules have pins. */
  pins?: Pin[];
}

/** A value of a fact source that must not change between the approval and the start. */
export interface Pin {
  /** Such as `facts.invoice.total`. */
  path: string;
  /** The policy that declares the fact. */
  policy: string;
}

/** A parameter that an approver can change, and the bounds of its new value. */
export interface EditableParameter {
  max?: number;
  /** Maximum length in characters. */
  max_length?: number;
  min?: number;
  one_of?: (string | number | boolean)[];
  /** Path of the parameter, such as `params.amount`. */
  path: string;
}

/** The value or the bounds that rules require for one parameter. The request that may run satisfies them. */
export interface Obligation {
  max?: number;
  min?: number;
  /** Such as `params.amount`. */
  path: string;
  set?: string | number | boolean;
}

/** The largest grants that rules allow. */
export interface GrantTerms {
  /** Maximum number of uses. */
  count: number;
  /** Duration of the grant. Milliseconds. */
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
  /** Approval that is required; null unless `effect` is `require_approval`. */
  approval: RequiredApproval | null;
  /**
   * Combined obligations of the matching rules, sorted by `path`. Absent if there are none, or if `effect` is `deny`.
   */
  obligations?: Obligation[];
  shadow: ShadowOutcome[];
}
