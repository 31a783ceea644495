/** Compiles one policy: its conditions, and an index of its rules by tool. */
import { createQuorumPlan, type ApproverPlan } from "../../approvers.ts";
import { canonicalText } from "../../canonical.ts";
import { sha256Hex, utf8 } from "../../hash.ts";
import { parseDuration } from "../../time.ts";
import { BASIS_DIGITS, DEFAULT_VALIDITY_MS } from "../parse/bounds.ts";
import { factOfPin } from "../../pins.ts";
import type { CompiledFact, CompiledLimit, CompiledPolicy, CompiledRule, CompileFault } from "./compiled-policy.ts";
import {
  compileCondition,
  compileExpression,
  type Condition,
  type Expression,
  type NamedValues,
} from "../condition/condition.ts";
import { parseMember } from "../condition/condition-members.ts";
import { namedValuesForLimits } from "../condition/named-values.ts";
import { parseEffectKey } from "./compile-effect-key.ts";
import { compileResultRule } from "./compile-results.ts";
import { compileInputs, listValuesRead } from "./compile-inputs.ts";
import { findPatternFaults } from "../check/pattern-faults.ts";
import { findSuggestedFaults } from "../check/suggested-faults.ts";
import { normalizePatterns } from "./name-patterns.ts";
import { RuleIndex } from "./rule-index.ts";
import type {
  ApprovalTerms,
  EditableParameter,
  LimitDocument,
  Obligation,
  ObligationTerms,
  PolicyDocument,
  RuleDocument,
} from "../policy-types.ts";
import { parsePreview } from "../decide/preview.ts";
import { parseWindow } from "../decide/window.ts";

/** Unit of sums. Limits count in whole millionths, so that sums are exact and the same in every store. */
export const MICROS_PER_UNIT = 1_000_000;
export const DEFAULT_EXPIRY_MS = 86_400_000;

/** The members of a compiled policy that do not depend on its policy set. */
type CompiledDefinition = Omit<CompiledPolicy, "order" | "version">;

/** Data that all rules and limits of a policy share, and the faults found so far. */
interface PolicyContext {
  policy: string;
  caseSensitive: boolean;
  named: NamedValues;
  faults: CompileFault[];
}

/** Compiles one policy. Returns it together with all its faults. */
export function compileDefinition(definition: PolicyDocument): { policy: CompiledDefinition; faults: CompileFault[] } {
  const faults: CompileFault[] = [];
  const name = definition.policy;
  const caseSensitive = definition.case_sensitive === true;
  for (const { detail } of findSuggestedFaults(definition)) faults.push({ policy: name, rule: null, message: detail });
  for (const { rule, message } of findPatternFaults(definition)) faults.push({ policy: name, rule, message });
  const { named, history, facts, faults: inputFaults } = compileInputs(definition);
  for (const { pointer, message } of inputFaults)
    faults.push({ policy: name, rule: null, message: `${pointer} ${message}` });
  const limitNames = namedValuesForLimits(named);
  const context: PolicyContext = { policy: name, caseSensitive, named, faults };
  const rules = new RuleIndex(
    definition.rules.map((rule, position) => ({
      rule: compileRule(rule, position, context),
      tools: list(rule.tool, caseSensitive),
    })),
  );
  const policy: Omit<CompiledDefinition, "readsAttributes"> = {
    name,
    shadow: definition.mode === "shadow",
    caseSensitive,
    tools: list(definition.applies_to?.tools, caseSensitive),
    agents: list(definition.applies_to?.agents, caseSensitive),
    rules,
    limits: (definition.limits ?? []).flatMap(
      (limit, i) =>
        compileLimit(limit, definition.rules.length + i, definition, { ...context, named: limitNames }) ?? [],
    ),
    results: (definition.results ?? []).map((rule) => {
      const compiled = compileResultRule(rule, caseSensitive);
      for (const { message } of compiled.faults) faults.push({ policy: name, rule: rule.name, message });
      return compiled.rule;
    }),
    suggested: definition.suggested?.in_place_of ?? null,
    named,
    history,
    facts,
    pinned: findPinnedFacts(definition, facts),
    hasObligations: definition.rules.some(({ obligations: { set, clamp } = {} }) => (set ?? clamp) !== undefined),
    redacts: definition.rules.some(({ obligations }) => obligations?.redact !== undefined),
  };
  return { policy: { ...policy, readsAttributes: findAttributeReads(policy) }, faults };
}

/** Returns true if an expression of the policy reads attributes of the agent or its principal. */
function findAttributeReads({
  rules: { all },
  limits,
  history,
  facts,
}: Omit<CompiledDefinition, "readsAttributes">): boolean {
  const rules = [...all, ...limits.map(({ rule }) => rule)];
  return [
    ...rules.map(({ condition }) => condition),
    ...limits.flatMap(({ per, sum }) => [per, sum === null || "usage" in sum.of ? null : sum.of]),
    history?.per ?? null,
    ...facts.flatMap(({ inputs }) => [...inputs.values()]),
  ].some((expression) => expression?.readsAttributes === true);
}

/** Returns the names of the facts that rules pin, and of the facts that their inputs read. */
function findPinnedFacts({ rules }: Pick<PolicyDocument, "rules">, facts: readonly CompiledFact[]): Set<string> {
  const pinned = new Set<string>();
  const add = ({ name, dependencies }: CompiledFact): void => {
    pinned.add(name);
    dependencies.forEach(add);
  };
  const named = new Set(rules.flatMap(({ approval }) => approval?.pins ?? []).map(factOfPin));
  facts.filter(({ name }) => named.has(name)).forEach(add);
  return pinned;
}

/** Compiles a limit. If it has faults, adds them to `faults` and returns null. */
function compileLimit(
  limit: LimitDocument,
  order: number,
  definition: Pick<PolicyDocument, "let" | "data">,
  context: PolicyContext,
): CompiledLimit | null {
  const { policy, caseSensitive, named, faults } = context;
  const reportFault = (message: string): void => void faults.push({ policy, rule: limit.name, message });
  const {
    name,
    description: _,
    per,
    count,
    sum,
    at_most,
    reserve = 0,
    window: span,
    time_zone,
    effect = "deny",
    ...rest
  } = limit;
  const before = faults.length;
  const rule = compileRule({ name, effect, ...rest }, order, context);
  const window = parseWindow(span, time_zone);
  if (typeof window === "string") reportFault(window);
  const expression = (source: string, noun: string): Expression | null => {
    const compiled = compileExpression(source, noun, named);
    if (compiled.ok) return compiled.expression;
    reportFault(compiled.message);
    return null;
  };
  const by = per === undefined ? null : expression(per === "key" ? "principal.key_id" : per, "expression of per");
  const usage = sum === undefined ? null : readUsageName(sum);
  const of = sum === undefined || usage !== null ? null : expression(sum, "expression of sum");
  const amount = usage === null ? of : { usage, reserve: Math.ceil(reserve * MICROS_PER_UNIT) };
  if (faults.length > before || typeof window === "string") return null;
  return {
    rule,
    tools: list(limit.tool, caseSensitive),
    basis: limitBasis(limit, definition, named, [by, of]),
    per: by,
    count: count ?? 0,
    sum: amount === null ? null : { of: amount, atMost: Math.round((at_most ?? 0) * MICROS_PER_UNIT) },
    window,
  };
}

/** Returns the name in an amount such as `usage.cost_usd`; null for an expression. */
export const readUsageName = (sum: string): string | null =>
  /^\s*usage\.([a-z][a-z0-9_]{0,31})\s*$/.exec(sum)?.[1] ?? null;

/** Returns the digest of the limit's expressions and of the named values that they read. */
function limitBasis(
  { per, sum }: LimitDocument,
  definition: Pick<PolicyDocument, "let" | "data">,
  namedValues: NamedValues,
  expressions: readonly (Expression | null)[],
): string {
  const values = listValuesRead(definition, namedValues, expressions);
  const counted = [per ?? null, sum ?? null, ...(Object.keys(values).length === 0 ? [] : [values])];
  return sha256Hex(utf8(canonicalText(counted))).slice(0, BASIS_DIGITS);
}

function compileRule(
  rule: RuleDocument,
  order: number,
  { policy, caseSensitive, named, faults }: PolicyContext,
): CompiledRule {
  let condition: Condition | null = null;
  if (rule.when !== undefined) {
    const compiled = compileCondition(rule.when, named);
    if (compiled.ok) condition = compiled.condition;
    else faults.push({ policy, rule: rule.name, message: compiled.message });
  }
  const duration = (text: string | undefined, absent: number): number => {
    const ms = text === undefined ? absent : parseDuration(text);
    if (ms === null)
      faults.push({ policy, rule: rule.name, message: `"${text ?? ""}" is not a duration such as 30m, 1h or 7d` });
    return ms ?? absent;
  };
  const expires_in_ms = duration(rule.approval?.expires_in, DEFAULT_EXPIRY_MS);
  const valid_for_ms = duration(rule.approval?.valid_for, DEFAULT_VALIDITY_MS);
  const holds = rule.approval?.rejection_holds;
  const rejection_holds_ms = holds === undefined ? null : holds === "none" ? 0 : duration(holds, 0);
  const effectKey = rule.effect_key === undefined ? null : parseEffectKey(rule.effect_key);
  if (typeof effectKey === "string") faults.push({ policy, rule: rule.name, message: effectKey });
  const { grants, pins = [], preview: template } = rule.approval ?? {};
  for (const pin of pins) {
    const compiled = compileExpression(pin, "pin", named);
    if (!compiled.ok) faults.push({ policy, rule: rule.name, message: compiled.message });
  }
  const preview = template === undefined ? null : parsePreview(template);
  if (typeof preview === "string") faults.push({ policy, rule: rule.name, message: preview });
  return {
    order,
    name: rule.name,
    effect: rule.effect,
    risk: rule.risk ?? null,
    reason: rule.reason ?? null,
    operations: list(rule.operation, caseSensitive),
    agents: list(rule.agent, caseSensitive),
    condition,
    approval:
      rule.effect === "require_approval"
        ? {
            plan: compileApprovers(rule.approval ?? {}, duration),
            expires_in_ms,
            valid_for_ms,
            editable: compileEditable(rule.approval?.editable ?? []),
            grants: grants === undefined ? null : { count: grants.count, for_ms: duration(grants.for, 0) },
            rejection_holds_ms,
            pins: [...pins].sort(),
            reviewers: (rule.approval?.reviewers ?? []).map(({ name, may_approve = false }) => ({ may_approve, name })),
            notify: [...new Set(rule.approval?.notify ?? [])].sort(),
          }
        : null,
    obligations: compileObligations(rule.obligations ?? {}),
    effectKey: typeof effectKey === "string" ? null : effectKey,
    redact: rule.obligations?.redact ?? [],
    show: (rule.approval?.show ?? []).map(parseMember),
    preview: typeof preview === "string" ? null : preview,
  };
}

/** Returns the parameters sorted by path, so that equivalent policies make equal decisions. */
function compileEditable(editable: NonNullable<ApprovalTerms["editable"]>): EditableParameter[] {
  const byPath = Array.isArray(editable) ? editable.map((path) => [path, {}] as const) : Object.entries(editable);
  return byPath
    .map(([path, { max, max_length, min, one_of }]: readonly [string, Omit<EditableParameter, "path">]) => ({
      ...(max === undefined ? {} : { max }),
      ...(max_length === undefined ? {} : { max_length }),
      ...(min === undefined ? {} : { min }),
      ...(one_of === undefined ? {} : { one_of }),
      path,
    }))
    .sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** Returns the obligations in order of their paths. */
function compileObligations({ set = {}, clamp = {} }: ObligationTerms): Obligation[] {
  const lists = [
    ...Object.entries(set).map(([path, value]) => ({ path, set: value })),
    ...Object.entries(clamp).map(([path, bounds]) => ({ ...bounds, path })),
  ];
  return lists.sort((a, b) => (a.path < b.path ? -1 : 1));
}

function compileApprovers(
  terms: ApprovalTerms,
  duration: (text: string | undefined, absent: number) => number,
): ApproverPlan {
  const { quorum = 1, exclude_requester_groups = false, mode = "maker_checker" } = terms;
  const stages = terms.stages ?? (terms.approvers === undefined ? null : [{ approvers: terms.approvers }]);
  const signature = terms.signature === undefined ? {} : { signature: terms.signature };
  if (stages === null) return { ...createQuorumPlan(quorum, mode), exclude_requester_groups, ...signature };
  return {
    exclude_requester_groups,
    mode,
    ...signature,
    stages: stages.map(({ after, approvers, notify = [] }: NonNullable<ApprovalTerms["stages"]>[number]) => ({
      after_ms: after === undefined ? null : duration(after, 0),
      approvers: approvers.map(({ group = null, count = 1 }) => ({ count, group })),
      ...(notify.length === 0 ? {} : { notify: [...new Set(notify)].sort() }),
    })),
  };
}

function list(value: string | string[] | undefined, caseSensitive: boolean): readonly string[] | null {
  if (value === undefined) return null;
  return normalizePatterns(typeof value === "string" ? [value] : value, caseSensitive);
}
