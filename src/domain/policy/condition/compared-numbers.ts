/** Finds the numbers that conditions compare with parameters. */
import type { JsonObject, JsonValue } from "../../json.ts";
import type { CompiledLimit, CompiledRule } from "../compile/compile.ts";
import { parseExpression } from "./cel-parse.ts";
import { childrenOf, type Expr, OPTIONAL_INDEX, OPTIONAL_SELECT } from "./cel-tree.ts";
import { findRequestPath } from "./condition-members.ts";
import type { PolicyDocument } from "../policy-types.ts";

const COMPARISONS = ["_<_", "_<=_", "_>_", "_>=_", "_==_", "_!=_"];

/** A number that an expression compares with a parameter. */
export interface ComparedNumber {
  /** Members of `params`. */
  path: readonly string[];
  /** The operator with the parameter on its left. */
  operator: string;
  value: number;
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
  const [root, ...path] = isOptional(member) ? [] : (findRequestPath(unwrapConversion(member)) ?? []);
  const value = readNumber(unwrapConversion(number), definition);
  return root === "params" && path.length > 0 && value !== null ? [{ path, operator, value }] : [];
}

/** Whether the expression reads an optional member, which is not a number. */
const isOptional = (expr: Expr): boolean =>
  (expr.exprKind.case === "callExpr" && [OPTIONAL_INDEX, OPTIONAL_SELECT].includes(expr.exprKind.value.function)) ||
  childrenOf(expr).some(isOptional);

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
    if (!isNumber) return null;
    const value = Number(constant.value);
    // A larger integer would be rounded.
    return typeof constant.value === "bigint" && !Number.isSafeInteger(value)
      ? null
      : Number.isFinite(value)
        ? value
        : null;
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

const summedPaths = new WeakMap<CompiledLimit, readonly string[] | null>();

/** Returns the members of `params` that a limit sums; null if it sums anything else. */
export function readSummedPath(limit: CompiledLimit, source: string): readonly string[] | null {
  let path = summedPaths.get(limit);
  if (path === undefined) {
    const { expr } = parseExpression(source);
    const [root, ...members] = isOptional(expr) ? [] : (findRequestPath(unwrapConversion(expr)) ?? []);
    summedPaths.set(limit, (path = root === "params" && members.length > 0 ? members : null));
  }
  return path;
}
