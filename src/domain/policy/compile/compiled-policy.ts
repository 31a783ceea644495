/** The compiled form of a policy set, and the faults that prevent compiling. */
import type { RuleIndex } from "./rule-index.ts";
import type { ApproverPlan } from "../../approvers.ts";
import type { RequiredReviewer } from "../../reviews.ts";
import type { StaticType } from "../check/static-types.ts";
import type { HistoryMembers } from "../condition/cel-history.ts";
import type { Condition, Expression, NamedValues } from "../condition/condition.ts";
import type { NamedInPolicies } from "./name-variants.ts";
import type { CompiledResultRule } from "./compile-results.ts";
import type { PreviewPart } from "../decide/preview.ts";
import type { TimeWindow } from "../decide/window.ts";
import type {
  EditableParameter,
  Effect,
  GrantTerms,
  Obligation,
  PolicySetDocument,
  RequiredApproval,
  Risk,
  SuggestedPolicyTerms,
} from "../policy-types.ts";

export interface CompiledRule {
  /** Position of the rule in its policy. Rules are matched in this order. */
  order: number;
  name: string;
  effect: Effect;
  risk: Risk | null;
  reason: string | null;
  operations: readonly string[] | null;
  agents: readonly string[] | null;
  condition: Condition | null;
  approval: CompiledApproval | null;
  /** `set` and `clamp`, in order of the paths. Empty if the rule has none. */
  obligations: readonly Obligation[];
  /** The business effect of the rule's actions; null if the rule names none. */
  effectKey: CompiledEffectKey | null;
  /** Paths of the parameters that people do not see. */
  redact: readonly string[];
  /** JSON pointers of the members that approvers see first. */
  show: readonly string[];
  /** Null if the rule has no preview. */
  preview: readonly PreviewPart[] | null;
}

/** The template of a business effect, and the period after a success in which the effect is not repeated. */
export interface CompiledEffectKey {
  parts: readonly PreviewPart[];
  within_ms: number;
}

/** `rejection_holds_ms` is null if the service's default applies. */
type CompiledApproval = Omit<
  RequiredApproval,
  "approvers" | "editable" | "grants" | "mode" | "pins" | "quorum" | "rejection_holds_ms" | "reviewers"
> & {
  plan: ApproverPlan;
  /** The machine reviewers; empty if the rule has no reviewers. */
  reviewers: readonly RequiredReviewer[];
  /** The parameters that approvers can change; empty if they cannot change any. */
  editable: readonly EditableParameter[];
  /** Null if no grant can cover the action. */
  grants: GrantTerms | null;
  /** Paths of the pinned facts, sorted; empty if the rule has none. */
  pins: readonly string[];
  rejection_holds_ms: number | null;
};

export interface CompiledLimit {
  /** The limit as a rule, which applies to an action that exceeds the limit: name, effect, approval terms, matchers. */
  rule: CompiledRule;
  tools: readonly string[] | null;
  /** Digest that identifies what the limit counts. See `LimitFact`. */
  basis: string;
  /** Expression that separates the counts; null counts all actions together. */
  per: Expression | null;
  /** Maximum number of actions. Not used by a limit on a sum. */
  count: number;
  /** The amounts to sum, and their maximum in millionths. Null for a limit on the number of actions. */
  sum: { of: Expression | ReportedUsage; atMost: number } | null;
  window: TimeWindow;
}

/** An amount that the result of an action reports. Until then, a reserved amount counts. In millionths. */
export interface ReportedUsage {
  usage: string;
  reserve: number;
}

/** The past actions that the conditions of a policy read. */
export interface CompiledHistory {
  /** Expression whose value is the owner of the actions; null if the owner is the session. */
  per: Expression | null;
  /** Digest of `per`, under which actions are stored. */
  ownerBasis: string;
  /** Digest that identifies what the history contains. See `HistoryFact`. */
  basis: string;
  members: HistoryMembers;
  tools: readonly string[] | null;
  operations: readonly string[] | null;
  includeDenied: boolean;
  window: TimeWindow;
  max: number;
  /** Paths of the members of results that conditions can read. */
  keep: readonly (readonly string[])[];
  /** The rule that denies an action if its history cannot be determined. */
  rule: CompiledRule;
}

/** A fact that conditions of a policy read. */
export interface CompiledFact {
  name: string;
  source: string;
  /** Compiled expressions, keyed by the name of the source's input. */
  inputs: ReadonlyMap<string, Expression>;
  /** The facts of the same policy that the inputs read. They are read first. */
  dependencies: readonly CompiledFact[];
  /** Type of the fact's value. */
  type: StaticType;
  /** Digest that identifies what the fact reads. See `SourceFact`. */
  basis: string;
}

export interface CompiledPolicy {
  /** Position of the policy in the set. */
  order: number;
  name: string;
  version: number;
  shadow: boolean;
  /** Whether names are matched case-sensitively. If false, pattern and name are case-folded. */
  caseSensitive: boolean;
  tools: readonly string[] | null;
  agents: readonly string[] | null;
  rules: RuleIndex<CompiledRule>;
  limits: readonly CompiledLimit[];
  /** Rules for what tools return. */
  results: readonly CompiledResultRule[];
  /** The rule in whose place the policy allows actions; null unless the policy is suggested. */
  suggested: SuggestedPolicyTerms["in_place_of"] | null;
  named: NamedValues;
  /** The policy's history; null if it declares no history. */
  history: CompiledHistory | null;
  facts: readonly CompiledFact[];
  /**
   * Names of the facts that rules pin, and of the facts that the inputs of pinned facts read. The service reads them
   * for each decision.
   */
  pinned: ReadonlySet<string>;
  /** Whether an expression of the policy reads attributes of the agent or its principal. */
  readsAttributes: boolean;
  /** Whether some rule changes parameters. */
  hasObligations: boolean;
  /** Whether some rule redacts parameters. */
  redacts: boolean;
}

export interface CompiledPolicySet {
  /** SHA-256 of the document's canonical JSON in hex; null for the set before the first activation. */
  readonly digest: string | null;
  readonly document: PolicySetDocument;
  readonly policies: readonly CompiledPolicy[];
  /** Policies that apply only to tools with exact names, keyed by case-folded tool name. */
  readonly byTool: ReadonlyMap<string, readonly CompiledPolicy[]>;
  /** Policies that can apply to any tool. */
  readonly anyTool: readonly CompiledPolicy[];
  /** The tools and operations that the enforced policies name. */
  readonly named: NamedInPolicies;
  /** Whether a policy of the set has limits. */
  readonly hasLimits: boolean;
  /** Whether a rule of the set has an effect key. */
  readonly hasEffectKeys: boolean;
  /** Names of the enforced policies that were suggested. */
  readonly suggested: readonly string[];
  /** The enforced policies with rules for what tools return, in the order of the set. */
  readonly withResults: readonly CompiledPolicy[];
  /** The policies that declare a history, in the order of the set. */
  readonly withHistory: readonly CompiledPolicy[];
  /** Whether a policy of the set declares facts. */
  readonly hasFacts: boolean;
  /** Whether a policy of the set reads attributes of the agent or its principal. */
  readonly readsAttributes: boolean;
  /** Whether some enforced policy changes parameters. */
  readonly hasObligations: boolean;
  /** Whether some enforced policy redacts parameters. */
  readonly redacts: boolean;
}

export interface CompileFault {
  policy: string;
  rule: string | null;
  message: string;
}
