/** A policy set, ready to decide: conditions compiled, rules found by tool. */
import { canonicalText } from "../canonical.ts";
import { sha256Hex, utf8 } from "../hash.ts";
import type { JsonValue } from "../json.ts";
import { parseDuration } from "../time.ts";
import { BASIS_DIGITS, boundEntry } from "./bounds.ts";
import { compileCondition, compileExpression, type Condition, type Expression } from "./condition.ts";
import { isGlob, matchesAny, matchGlob } from "./glob.ts";
import { parseWindow, type Window } from "./window.ts";
import type { Decision, Effect, LimitDocument, PolicySetDocument, PolicySetMember, Risk, RuleDocument } from "./types.ts";

/** Amounts of limits are whole millionths, so that sums are exact and come out the same in every store. */
export const MICRO = 1_000_000;
export const DEFAULT_EXPIRY_MS = 86_400_000;

export interface CompiledRule {
  /** Position in its policy: the order of matching. */
  order: number;
  name: string;
  effect: Effect;
  risk: Risk | null;
  reason: string | null;
  operations: readonly string[] | null;
  agents: readonly string[] | null;
  condition: Condition | null;
  approval: Decision["approval"];
}

export interface CompiledLimit {
  /** What an action that goes beyond it meets: name, effect, terms, matchers. */
  rule: CompiledRule;
  tools: readonly string[] | null;
  /** Of `LimitFact`. */
  basis: string;
  /** What it counts for; null: all together. */
  per: Expression | null;
  /** Actions; without meaning where a sum is limited. */
  count: number;
  /** `atMost` in millionths. */
  sum: { of: Expression; atMost: number } | null;
  window: Window;
}

export interface CompiledPolicy {
  /** Position in the set. */
  order: number;
  name: string;
  version: number;
  shadow: boolean;
  tools: readonly string[] | null;
  agents: readonly string[] | null;
  /** Rules that name this very tool and no glob. */
  exact: ReadonlyMap<string, readonly CompiledRule[]>;
  /** Rules for any tool (null) or for globs. */
  patterns: readonly { rule: CompiledRule; globs: readonly string[] | null }[];
  limits: readonly CompiledLimit[];
}

export interface Compiled {
  /** SHA-256 of the document's canonical JSON, hex; null for the set before the first activation. */
  readonly digest: string | null;
  readonly document: PolicySetDocument;
  readonly policies: readonly CompiledPolicy[];
  /** Policies that speak of nothing but the tools they name, by tool. */
  readonly byTool: ReadonlyMap<string, readonly CompiledPolicy[]>;
  /** Policies that may speak of any tool. */
  readonly wide: readonly CompiledPolicy[];
  /** Whether some policy has limits. */
  readonly limited: boolean;
}

export interface CompileFault {
  policy: string;
  rule: string | null;
  message: string;
}

export class PolicyCompileError extends Error {
  readonly faults: CompileFault[];
  constructor(faults: CompileFault[]) {
    super(faults.map((f) => `policy "${f.policy}"${f.rule === null ? "" : `, rule "${f.rule}"`}: ${f.message}`).join("; "));
    this.name = "PolicyCompileError";
    this.faults = faults;
  }
}

/** Sorted by name, so that the digest does not depend on the order of files. */
export function buildPolicySet(members: readonly PolicySetMember[]): PolicySetDocument {
  return { format: "assent-policy-set/1", policies: [...members].sort((a, b) => (a.policy < b.policy ? -1 : a.policy > b.policy ? 1 : 0)) };
}

export function policySetDigest(document: PolicySetDocument): string {
  return sha256Hex(utf8(canonicalText(document as unknown as JsonValue)));
}

export function emptyPolicySet(): Compiled {
  return { digest: null, document: buildPolicySet([]), policies: [], byTool: new Map(), wide: [], limited: false };
}

/** Throws PolicyCompileError with every fault. */
export function compilePolicySet(document: PolicySetDocument): Compiled {
  const faults: CompileFault[] = [];
  const names = new Set<string>();
  const byTool = new Map<string, CompiledPolicy[]>();
  const wide: CompiledPolicy[] = [];
  const policies = document.policies.map((member, order) => {
    if (names.has(member.policy)) faults.push({ policy: member.policy, rule: null, message: "stands twice in the set; give each policy a name of its own" });
    names.add(member.policy);
    const policy = compilePolicy(member, order, faults);
    const tools = namedTools(policy);
    if (tools === null) wide.push(policy);
    for (const tool of tools ?? []) {
      const known = byTool.get(tool);
      if (known === undefined) byTool.set(tool, [policy]);
      else known.push(policy);
    }
    return policy;
  });
  boundEntry(document, faults);
  if (faults.length > 0) throw new PolicyCompileError(faults);
  return { digest: policySetDigest(document), document, policies, byTool, wide, limited: policies.some(({ limits }) => limits.length > 0) };
}

/** The tools a policy can speak of; null when globs leave that open. */
function namedTools({ tools, patterns, exact, limits }: CompiledPolicy): Iterable<string> | null {
  const limited = limits.flatMap((limit) => limit.tools ?? ["*"]);
  if (patterns.length === 0 && !limited.some(isGlob)) return new Set([...exact.keys(), ...limited]);
  return tools === null || tools.some(isGlob) ? null : new Set(tools);
}

function compilePolicy(member: PolicySetMember, order: number, faults: CompileFault[]): CompiledPolicy {
  const { definition } = member;
  const exact = new Map<string, CompiledRule[]>();
  const patterns: { rule: CompiledRule; globs: readonly string[] | null }[] = [];
  for (const [position, rule] of definition.rules.entries()) {
    const compiled = compileRule(member.policy, rule, position, faults);
    const tools = list(rule.tool);
    if (tools === null || tools.some(isGlob)) {
      patterns.push({ rule: compiled, globs: tools });
      continue;
    }
    for (const tool of new Set(tools)) {
      const known = exact.get(tool);
      if (known === undefined) exact.set(tool, [compiled]);
      else known.push(compiled);
    }
  }
  return {
    order,
    name: member.policy,
    version: member.version,
    shadow: definition.mode === "shadow",
    tools: definition.applies_to?.tools ?? null,
    agents: definition.applies_to?.agents ?? null,
    exact,
    patterns,
    limits: (definition.limits ?? []).flatMap((limit, i) => compileLimit(member.policy, limit, definition.rules.length + i, faults) ?? []),
  };
}

/** Null where it has faults, which are told. */
function compileLimit(policy: string, limit: LimitDocument, order: number, faults: CompileFault[]): CompiledLimit | null {
  const fault = (message: string): void => void faults.push({ policy, rule: limit.name, message });
  const { name, description: _, per, count, sum, at_most, window: span, time_zone, effect = "deny", ...rest } = limit;
  const before = faults.length;
  const rule = compileRule(policy, { name, effect, ...rest }, order, faults);
  const window = parseWindow(span, time_zone);
  if (typeof window === "string") fault(window);
  const expression = (source: string, what: string): Expression | null => {
    const compiled = compileExpression(source, what);
    if (compiled.ok) return compiled.expression;
    fault(compiled.message);
    return null;
  };
  const by = per === undefined ? null : expression(per === "key" ? "principal.key_id" : per, "expression of per");
  const of = sum === undefined ? null : expression(sum, "expression of sum");
  if (faults.length > before || typeof window === "string") return null;
  const basis = sha256Hex(utf8(canonicalText([per ?? null, sum ?? null]))).slice(0, BASIS_DIGITS);
  return { rule, tools: list(limit.tool), basis, per: by, count: count ?? 0, sum: of === null ? null : { of, atMost: Math.round((at_most ?? 0) * MICRO) }, window };
}

function compileRule(policy: string, rule: RuleDocument, order: number, faults: CompileFault[]): CompiledRule {
  let condition: Condition | null = null;
  if (rule.when !== undefined) {
    const compiled = compileCondition(rule.when);
    if (compiled.ok) condition = compiled.condition;
    else faults.push({ policy, rule: rule.name, message: compiled.message });
  }
  const expires = rule.approval?.expires_in === undefined ? DEFAULT_EXPIRY_MS : parseDuration(rule.approval.expires_in);
  if (expires === null) faults.push({ policy, rule: rule.name, message: `"${rule.approval?.expires_in ?? ""}" is not a duration such as 30m, 1h or 7d` });
  return {
    order,
    name: rule.name,
    effect: rule.effect,
    risk: rule.risk ?? null,
    reason: rule.reason ?? null,
    operations: list(rule.operation),
    agents: list(rule.agent),
    condition,
    approval:
      rule.effect === "require_approval"
        ? { quorum: rule.approval?.quorum ?? 1, expires_in_ms: expires ?? DEFAULT_EXPIRY_MS, notify: [...new Set(rule.approval?.notify ?? [])].sort() }
        : null,
  };
}

function list(value: string | string[] | undefined): string[] | null {
  if (value === undefined) return null;
  return typeof value === "string" ? [value] : value;
}

/** Policies that could say something about a tool, in the order of the set. */
export function policiesForTool({ byTool, wide }: Compiled, tool: string): readonly CompiledPolicy[] {
  const named = byTool.get(tool);
  if (named === undefined) return wide;
  return wide.length === 0 ? named : [...named, ...wide].sort((a, b) => a.order - b.order);
}

export function policyApplies(policy: CompiledPolicy, tool: string, agent: string): boolean {
  return (policy.tools === null || matchesAny(policy.tools, tool)) && (policy.agents === null || matchesAny(policy.agents, agent));
}

/** Rules of one policy that could match this tool, in the order they are written. Costs nothing for rules about other tools. */
export function* rulesForTool(policy: CompiledPolicy, tool: string): Generator<CompiledRule, void, undefined> {
  const exact = policy.exact.get(tool) ?? [];
  let e = 0;
  for (const { rule, globs } of policy.patterns) {
    if (globs !== null && !globs.some((glob) => matchGlob(glob, tool))) continue;
    while (e < exact.length && (exact[e] as CompiledRule).order < rule.order) yield exact[e++] as CompiledRule;
    yield rule;
  }
  while (e < exact.length) yield exact[e++] as CompiledRule;
}
