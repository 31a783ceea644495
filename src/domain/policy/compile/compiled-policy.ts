/** The compiled form of a policy set, and the faults that prevent compiling. */
import type { ApproverPlan } from "../../approvers.ts";
import type { RequiredReviewer } from "../../reviews.ts";
import type { StaticType } from "../check/static-types.ts";
import type { HistoryMembers } from "../condition/cel-history.ts";
import type { Condition, Expression, NamedValues } from "../condition/condition.ts";
import type { PreviewPart } from "../decide/preview.ts";
import type { Window } from "../decide/window.ts";
import type {
  EditableParameter,
  Effect,
  GrantTerms,
  Obligation,
  PolicySetDocument,
  RequiredApproval,
  Risk,
  SuggestedTerms,
} from "../policy-types.ts";

export interface CompiledRule {
  /** Position in its policy. Rules are matched in this order. */
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
  /** Paths of the parameters that people do not see. */
  redact: readonly string[];
  /** JSON pointers of the members that approvers see first. */
  show: readonly string[];
  /** Null if the rule has no preview. */
  preview: readonly PreviewPart[] | null;
}

/** `rejection_holds_ms` is null if the service's default applies. */
type CompiledApproval = Omit<
  RequiredApproval,
  "approvers" | "editable" | "grants" | "mode" | "quorum" | "rejection_holds_ms" | "reviewers"
> & {
  plan: ApproverPlan;
  /** Empty if the rule names none. */
  reviewers: readonly RequiredReviewer[];
  /** Empty if approvers can change nothing. */
  editable: readonly EditableParameter[];
  /** Null if no grant can cover the action. */
  grants: GrantTerms | null;
  rejection_holds_ms: number | null;
};

export interface CompiledLimit {
  /** The rule that applies to an action that exceeds the limit: name, effect, approval terms, matchers. */
  rule: CompiledRule;
  tools: readonly string[] | null;
  /** The basis of the limit; see `LimitFact`. */
  basis: string;
  /** Expression that separates the counts; null counts all actions together. */
  per: Expression | null;
  /** Maximum number of actions. Not used by a limit on a sum. */
  count: number;
  /** `atMost` in millionths. */
  sum: { of: Expression; atMost: number } | null;
  window: Window;
}

/** The past actions that the conditions of a policy read. */
export interface CompiledHistory {
  /** Expression that separates the actions; null for the session. */
  per: Expression | null;
  /** Digest of `per`, under which actions are stored. */
  ownerBasis: string;
  /** The basis of the history; see `HistoryFact`. */
  basis: string;
  members: HistoryMembers;
  tools: readonly string[] | null;
  operations: readonly string[] | null;
  includeDenied: boolean;
  window: Window;
  max: number;
  /** The rule that denies an action if its history cannot be determined. */
  rule: CompiledRule;
}

/** A fact that conditions of a policy read. */
export interface CompiledFact {
  name: string;
  source: string;
  /** By name of the source's input. */
  inputs: ReadonlyMap<string, Expression>;
  /** Of the value. */
  type: StaticType;
  /** The basis of the fact; see `SourceFact`. */
  basis: string;
}

export interface CompiledPolicy {
  /** Position in the set. */
  order: number;
  name: string;
  version: number;
  shadow: boolean;
  /** Whether names match exactly. Otherwise pattern and name are folded. */
  caseSensitive: boolean;
  tools: readonly string[] | null;
  agents: readonly string[] | null;
  /** Rules that name this exact tool, without globs. */
  exact: ReadonlyMap<string, readonly CompiledRule[]>;
  /** Rules for any tool (`globs` is null) or with globs. */
  patterns: readonly { rule: CompiledRule; globs: readonly string[] | null }[];
  limits: readonly CompiledLimit[];
  /** The rule in whose place the policy allows actions; null unless the policy is a suggested one. */
  suggested: SuggestedTerms["in_place_of"] | null;
  named: NamedValues;
  /** Null if the policy declares none. */
  history: CompiledHistory | null;
  facts: readonly CompiledFact[];
  /** Whether some expression reads attributes of the agent or its principal. */
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
  /** Policies that apply only to the tools that they name, by case-folded tool name. */
  readonly byTool: ReadonlyMap<string, readonly CompiledPolicy[]>;
  /** Policies that can apply to any tool. */
  readonly anyTool: readonly CompiledPolicy[];
  /** Whether some policy has limits. */
  readonly hasLimits: boolean;
  /** Names of the enforced policies that were suggested. */
  readonly suggested: readonly string[];
  /** The policies that declare a history, in the order of the set. */
  readonly withHistory: readonly CompiledPolicy[];
  /** Whether some policy declares facts. */
  readonly hasFacts: boolean;
  /** Whether some policy reads attributes of the agent or its principal. */
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
