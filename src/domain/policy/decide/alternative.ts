/**
 * Finds, for a denied action, the nearest value of one parameter with which the policies would not deny it. Candidates
 * come from the numbers that conditions and limits compare with a parameter. A candidate counts only if `decide` says so,
 * with the facts of the denial, so an answer is never a guess about what a condition means.
 */
import type { ActionRequest } from "../../actions.ts";
import type { JsonObject, JsonValue } from "../../json.ts";
import type { CompiledPolicy } from "../compile/compile.ts";
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
const MAX_TRIALS = 24;
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

/** Returns the numbers that an expression compares with parameters. Numbers can be named values of the policy. */
function listComparedNumbers(source: string, definition: Pick<PolicyDocument, "let" | "data">): ComparedNumber[] {
  try {
    return listFromTree(parseExpression(source).expr, definition);
  } catch {
    return [];
  }
}

function listFromTree(expr: Expr, definition: Pick<PolicyDocument, "let" | "data">): ComparedNumber[] {
  const { exprKind: kind } = expr;
  const nested = childrenOf(expr).flatMap((child) => listFromTree(child, definition));
  if (kind.case !== "callExpr" || !COMPARISONS.includes(kind.value.function)) return nested;
  const [left, right] = kind.value.args;
  if (left === undefined || right === undefined) return nested;
  const operator = kind.value.function.slice(1, -1);
  return [
    ...nested,
    ...toComparison(left, right, operator, definition),
    ...toComparison(right, left, MIRRORED[operator] ?? operator, definition),
  ];
}

const MIRRORED: Readonly<Record<string, string>> = { "<": ">", "<=": ">=", ">": "<", ">=": "<=" };

function toComparison(
  member: Expr,
  number: Expr,
  operator: string,
  definition: Pick<PolicyDocument, "let" | "data">,
): ComparedNumber[] {
  const [root, ...path] = findRequestPath(unwrapConversion(member)) ?? [];
  const value = readNumber(unwrapConversion(number), definition);
  return root === "params" && path.length > 0 && value !== null ? [{ path, operator, value }] : [];
}

/** Returns the operand of a conversion such as `double(params.amount)`. */
function unwrapConversion(expr: Expr): Expr {
  const { exprKind: kind } = expr;
  if (kind.case !== "callExpr" || !["double", "int", "uint"].includes(kind.value.function)) return expr;
  return kind.value.args[0] ?? expr;
}

function readNumber(expr: Expr, definition: Pick<PolicyDocument, "let" | "data">): number | null {
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
  const found: Candidate[] = [];
  const add = (path: readonly string[], value: number): void => {
    const requested = readParameter(request.params, path);
    if (typeof requested !== "number" || !Number.isFinite(value) || value === requested) return;
    if (found.some((one) => one.value === value && one.path.join("\n") === path.join("\n"))) return;
    if (policies.some((policy) => isFixed(policy, path))) return;
    found.push({ path, value, distance: Math.abs(value - requested) });
  };
  const policies = evaluation.applicablePolicies().filter(({ shadow }) => !shadow);
  for (const policy of policies) {
    const definition = compiled.document.policies[policy.order]?.definition;
    if (definition === undefined) continue;
    const rules = new Set(evaluation.rules(policy).map(({ order }) => order));
    for (const { when = "" } of definition.rules.filter((_, order) => rules.has(order)))
      for (const { path, operator, value } of listComparedNumbers(when, definition)) {
        add(path, value);
        // A strict comparison excludes the number itself.
        if (operator !== "<=" && operator !== "==") add(path, value - stepOf(value));
        if (operator !== ">=" && operator !== "==") add(path, value + stepOf(value));
      }
    for (const limit of policy.limits) {
      const { sum, name } = definition.limits?.find((one) => one.name === limit.rule.name) ?? {};
      const used = findRecordedUsage(facts, { policy: policy.name, limit: name ?? "", basis: limit.basis });
      const path = sum === undefined ? null : readSummedPath(sum);
      if (path !== null && used !== null && limit.sum !== null && limit.sum.atMost > used)
        add(path, (limit.sum.atMost - used) / MICROS_PER_UNIT);
    }
  }
  return found;
}

/** Returns the step to the next value: 1 for an integer, and 0.01 otherwise. */
const stepOf = (value: number): number => (Number.isInteger(value) ? 1 : 0.01);

function readSummedPath(source: string): string[] | null {
  try {
    const [root, ...path] = findRequestPath(unwrapConversion(parseExpression(source).expr)) ?? [];
    return root === "params" && path.length > 0 ? path : null;
  } catch {
    return null;
  }
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

function readParameter(params: JsonObject, path: readonly string[]): JsonValue | undefined {
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

/** The bounds of numbers in a condition, and whether the condition has no other parts. */
interface DescribedCondition {
  bounds: ComparedNumber[];
  isComplete: boolean;
}

/** Returns the comparisons of parameters with numbers that must all hold for the condition to be true. */
export function describeBounds(source: string, definition: Pick<PolicyDocument, "let" | "data">): DescribedCondition {
  const bounds: ComparedNumber[] = [];
  let isComplete = true;
  for (const part of listConjuncts(parseExpression(source).expr)) {
    const { exprKind: kind } = part;
    const isComparison = kind.case === "callExpr" && COMPARISONS.includes(kind.value.function);
    const found = isComparison ? listFromTree(part, definition) : [];
    bounds.push(...found);
    isComplete &&= found.length > 0;
  }
  return { bounds, isComplete };
}

function listConjuncts(expr: Expr): Expr[] {
  const { exprKind: kind } = expr;
  return kind.case === "callExpr" && kind.value.function === "_&&_" ? kind.value.args.flatMap(listConjuncts) : [expr];
}
