/**
 * Finds, for a denied action, the nearest value of one parameter with which the policies would not deny it. Candidates
 * come from the numbers that conditions and limits compare with a parameter. A candidate counts only if `decide` says so,
 * with the facts of the denial, so an answer is never a guess about what a condition means.
 */
import type { ActionRequest } from "../../actions.ts";
import type { JsonObject, JsonValue } from "../../json.ts";
import type { CompiledLimit, CompiledPolicy, CompiledRule } from "../compile/compile.ts";
import { parseExpression } from "../condition/cel-parse.ts";
import { childrenOf, type Expr } from "../condition/cel-tree.ts";
import { findRequestPath } from "../condition/condition-members.ts";
import type { Facts, PolicyDocument, ReasonCode } from "../policy-types.ts";
import { decide } from "./decide.ts";
import { Evaluation } from "./evaluation.ts";
import { findRecordedUsage, MICROS_PER_UNIT } from "./limit-facts.ts";

export interface Alternative {
  /** Such as `params.amount`. */
  path: string;
  value: number;
  /** The decision about the same action with this value. */
  decision: "allow" | "require_approval";
}

/** Maximum number of decisions for one denial. */
const MAX_TRIALS = 8;
/** Maximum number of rules whose numbers are candidates. */
const MAX_RULES = 200;
const COMPARISONS = ["_<_", "_<=_", "_>_", "_>=_", "_==_", "_!=_"];
/** Denials that another value can avoid. */
const AVOIDABLE: readonly ReasonCode[] = ["POLICY_RULE", "NO_MATCHING_RULE", "LIMIT_EXCEEDED"];

/** A number that an expression compares with a parameter. */
interface ComparedNumber {
  /** Members of `params`. */
  path: readonly string[];
  /** The operator with the parameter on its left. */
  operator: string;
  value: number;
}

/**
 * Returns the nearest alternative; null if there is none. Prefers a value that is allowed to one that requires approval.
 * @param facts the facts of the denial
 * @param reason the reason code of the denial
 */
export function findAlternative(evaluation: Evaluation, facts: Facts, reason: ReasonCode): Alternative | null {
  if (!AVOIDABLE.includes(reason)) return null;
  const { compiled, request, now } = evaluation;
  let best: (Alternative & { distance: number }) | null = null;
  const candidates = listCandidates(evaluation, facts).sort((a, b) => a.distance - b.distance);
  for (const { path, value, distance } of candidates.slice(0, MAX_TRIALS)) {
    const { effect } = decide(compiled, replaceParameter(request, path, value), facts, now);
    if (effect === "deny" || (best !== null && (best.decision === "allow" || effect !== "allow"))) continue;
    best = { path: ["params", ...path].join("."), value, decision: effect, distance };
    if (effect === "allow") break;
  }
  if (best === null) return null;
  const { path, value, decision } = best;
  return { path, value, decision };
}

/** The numbers that a condition compares with parameters. */
export interface DescribedCondition {
  /** All such comparisons, also in parts such as `a || b`. */
  compared: readonly ComparedNumber[];
  /** The comparisons that must all hold for the condition to be true. */
  bounds: readonly ComparedNumber[];
  /** Whether the condition has no parts other than `bounds`. */
  isComplete: boolean;
}

/** A compiled rule does not change, and parsing the conditions of a large policy set takes longer than a decision. */
const descriptions = new WeakMap<CompiledRule, DescribedCondition>();

/** Returns the numbers that a rule's condition compares with parameters. Numbers can be named values of the policy. */
export function describeCondition(rule: CompiledRule, definition: PolicyDocument): DescribedCondition {
  let described = descriptions.get(rule);
  if (described === undefined) descriptions.set(rule, (described = readCondition(rule, definition)));
  return described;
}

function readCondition({ order }: CompiledRule, definition: PolicyDocument): DescribedCondition {
  const source = definition.rules[order]?.when;
  if (source === undefined) return { compared: [], bounds: [], isComplete: true };
  const { expr } = parseExpression(source);
  const conjuncts = listConjuncts(expr).map((part) => readComparison(part, definition));
  return {
    compared: listFromTree(expr, definition),
    bounds: conjuncts.flat(),
    isComplete: conjuncts.every((found) => found.length > 0),
  };
}

function listConjuncts(expr: Expr): Expr[] {
  const { exprKind: kind } = expr;
  return kind.case === "callExpr" && kind.value.function === "_&&_" ? kind.value.args.flatMap(listConjuncts) : [expr];
}

const listFromTree = (expr: Expr, definition: PolicyDocument): ComparedNumber[] => [
  ...childrenOf(expr).flatMap((child) => listFromTree(child, definition)),
  ...readComparison(expr, definition),
];

/** Returns the comparison that the expression is; empty if it is another expression, even if that contains one. */
function readComparison({ exprKind: kind }: Expr, definition: PolicyDocument): ComparedNumber[] {
  if (kind.case !== "callExpr" || !COMPARISONS.includes(kind.value.function)) return [];
  const [left, right] = kind.value.args;
  if (left === undefined || right === undefined) return [];
  const operator = kind.value.function.slice(1, -1);
  return [
    ...toComparison(left, right, operator, definition),
    ...toComparison(right, left, MIRRORED[operator] ?? operator, definition),
  ];
}

const MIRRORED: Readonly<Record<string, string>> = { "<": ">", "<=": ">=", ">": "<", ">=": "<=" };

function toComparison(member: Expr, number: Expr, operator: string, definition: PolicyDocument): ComparedNumber[] {
  const [root, ...path] = findRequestPath(unwrapConversion(member)) ?? [];
  const value = readNumber(unwrapConversion(number), definition);
  return root === "params" && path.length > 0 && value !== null ? [{ path, operator, value }] : [];
}

/** Returns the operand of `double(params.amount)`. Other conversions change the value. */
function unwrapConversion(expr: Expr): Expr {
  const { exprKind: kind } = expr;
  if (kind.case !== "callExpr" || kind.value.function !== "double") return expr;
  return kind.value.args[0] ?? expr;
}

function readNumber(expr: Expr, definition: PolicyDocument): number | null {
  const { exprKind: kind } = expr;
  if (kind.case === "constExpr") {
    const { constantKind: constant } = kind.value;
    const isNumber =
      constant.case === "int64Value" || constant.case === "uint64Value" || constant.case === "doubleValue";
    return isNumber && Number.isFinite(Number(constant.value)) ? Number(constant.value) : null;
  }
  const names = readNames(expr);
  if (names === null) return null;
  const [first = "", ...members] = names;
  let value: JsonValue | undefined = first === "data" ? definition.data : definition.let?.[first];
  for (const name of members) value = (value as JsonObject | undefined | null)?.[name];
  return typeof value === "number" ? value : null;
}

/** Returns the names of `a.b.c`; null for other expressions. */
function readNames({ exprKind: kind }: Expr): string[] | null {
  if (kind.case === "identExpr") return [kind.value.name];
  if (kind.case !== "selectExpr" || kind.value.operand === undefined) return null;
  const owner = readNames(kind.value.operand);
  return owner === null ? null : [...owner, kind.value.field];
}

interface Candidate {
  path: readonly string[];
  value: number;
  /** Distance from the requested value. */
  distance: number;
}

function listCandidates(evaluation: Evaluation, facts: Facts): Candidate[] {
  const { compiled, request } = evaluation;
  const policies = evaluation.applicablePolicies().filter(({ shadow }) => !shadow);
  const found = new Map<string, Candidate>();
  /** The requested values of parameters by path; null if another value cannot replace them. */
  const requestedValues = new Map<string, number | null>();
  const add = (path: readonly string[], value: number): void => {
    const key = path.join("\n");
    let requested = requestedValues.get(key);
    if (requested === undefined) {
      const given = readParameter(request.params, path);
      const canChange = typeof given === "number" && !policies.some((policy) => isFixed(policy, path));
      requestedValues.set(key, (requested = canChange ? given : null));
    }
    if (requested === null || !Number.isFinite(value) || value === requested) return;
    found.set(`${value}\n${key}`, { path, value, distance: Math.abs(value - requested) });
  };
  let rulesLeft = MAX_RULES;
  for (const policy of policies) {
    const definition = compiled.document.policies[policy.order]?.definition;
    if (definition === undefined) continue;
    const rules = evaluation.rules(policy).filter(({ condition }) => condition !== null);
    for (const rule of rules.slice(0, rulesLeft))
      for (const { path, operator, value } of describeCondition(rule, definition).compared) {
        add(path, value);
        // A strict comparison excludes the number itself.
        if (operator !== "<=" && operator !== "==") add(path, value - stepOf(value));
        if (operator !== ">=" && operator !== "==") add(path, value + stepOf(value));
      }
    rulesLeft -= Math.min(rules.length, rulesLeft);
    for (const limit of policy.limits) {
      const { sum, name, per } = definition.limits?.find((one) => one.name === limit.rule.name) ?? {};
      if (sum === undefined || limit.sum === null || !isOwnLimit(per, facts)) continue;
      const used = findRecordedUsage(facts, { policy: policy.name, limit: name ?? "", basis: limit.basis });
      const path = readSummedPath(limit, sum);
      if (path !== null && used !== null && limit.sum.atMost > used)
        add(path, (limit.sum.atMost - used) / MICROS_PER_UNIT);
    }
  }
  return [...found.values()];
}

/**
 * Whether the limit counts only the caller's actions. The rest of another limit would reveal the amounts of others. A key
 * without an agent can name any agent.
 */
const isOwnLimit = (per: string | undefined, { principal }: Facts): boolean =>
  per === "key" || (per === "agent" && principal?.agent_id != null);

/** Returns the step to the next value: 1 for an integer, and 0.01 otherwise. */
const stepOf = (value: number): number => (Number.isInteger(value) ? 1 : 0.01);

const summedPaths = new WeakMap<CompiledLimit, readonly string[] | null>();

/** Returns the members of `params` that a limit sums; null if it sums anything else. */
function readSummedPath(limit: CompiledLimit, source: string): readonly string[] | null {
  let path = summedPaths.get(limit);
  if (path === undefined) {
    const [root, ...members] = findRequestPath(unwrapConversion(parseExpression(source).expr)) ?? [];
    summedPaths.set(limit, (path = root === "params" && members.length > 0 ? members : null));
  }
  return path;
}

/** Whether recorded facts depend on the parameter, so that they do not apply to another value. */
function isFixed({ facts, limits, history }: CompiledPolicy, path: readonly string[]): boolean {
  const pointer = `/params/${path[0]}`;
  const reads = (members: readonly string[] | undefined): boolean =>
    members?.some((member) => `${member}/`.startsWith(`${pointer}/`)) === true;
  return (
    facts.some(({ inputs }) => [...inputs.values()].some((input) => reads(input.members))) ||
    limits.some(({ per }) => reads(per?.members)) ||
    reads(history?.per?.members)
  );
}

/** Returns the value at the path in the parameters; undefined if there is none. */
export function readParameter(params: JsonObject, path: readonly string[]): JsonValue | undefined {
  let value: JsonValue | undefined = params;
  for (const name of path) {
    if (typeof value !== "object" || value === null || Array.isArray(value) || !Object.hasOwn(value, name))
      return undefined;
    value = value[name];
  }
  return value;
}

function replaceParameter(request: ActionRequest, path: readonly string[], value: number): ActionRequest {
  const replaceIn = (owner: JsonObject, [name = "", ...rest]: readonly string[]): JsonObject => ({
    ...owner,
    [name]: rest.length === 0 ? value : replaceIn(owner[name] as JsonObject, rest),
  });
  return { ...request, params: replaceIn(request.params, path) };
}
