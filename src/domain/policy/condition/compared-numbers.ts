/** Finds the numbers that conditions compare with parameters. */
import type { JsonObject, JsonValue } from "../../json.ts";
import { childrenOf, type Expr, OPTIONAL_INDEX, OPTIONAL_SELECT } from "./cel-tree.ts";
import { findRequestPath } from "./condition-members.ts";
import type { PolicyDocument } from "../policy-types.ts";

const COMPARISONS = ["_<_", "_<=_", "_>_", "_>=_", "_==_", "_!=_"];

/** A number that an expression compares with a parameter. */
export interface ComparedNumber {
  /** Members of `params`. */
  path: readonly string[];
  /** The operator, written with the parameter on its left: `<` for `100 > params.amount`. */
  operator: string;
  value: number;
}

/** A comparison in the source of an expression. Its number can be the name of a value, such as `data.limits.most`. */
interface Comparison extends Omit<ComparedNumber, "value"> {
  value: number | readonly string[];
}

/**
 * The comparisons of an expression. They are collected at compile time, because parsing takes longer than a decision.
 */
export interface Comparisons {
  /** All comparisons, including those nested in operators such as `a || b`. */
  all: readonly Comparison[];
  /** The comparisons that are operands of the outermost `&&`. Empty for any other operand. */
  conjuncts: readonly (readonly Comparison[])[];
}

/** The numbers that a condition compares with parameters. */
export interface DescribedCondition {
  /** All comparisons, including those nested in operators such as `a || b`. */
  compared: readonly ComparedNumber[];
  /** The comparisons that must all hold for the condition to be true. */
  bounds: readonly ComparedNumber[];
  /** Whether the condition has no parts other than `bounds`. */
  isComplete: boolean;
}

const described = new WeakMap<Comparisons, DescribedCondition>();

/**
 * Returns the numbers that a condition compares with parameters. Numbers can be named values of the policy. Caches the
 * result for each compiled condition.
 * @param definition the policy that contains the condition
 */
export function describeComparisons(
  comparisons: Comparisons,
  definition: Pick<PolicyDocument, "data" | "let">,
): DescribedCondition {
  const cached = described.get(comparisons) ?? resolveComparisons(comparisons, definition);
  described.set(comparisons, cached);
  return cached;
}

function resolveComparisons(
  { all, conjuncts }: Comparisons,
  definition: Pick<PolicyDocument, "data" | "let">,
): DescribedCondition {
  const resolve = ({ path, operator, value }: Comparison): ComparedNumber[] => {
    const number = typeof value === "number" ? value : readNamedNumber(value, definition);
    return number === null ? [] : [{ path, operator, value: number }];
  };
  const bounds = conjuncts.map((each) => each.flatMap(resolve));
  return { compared: all.flatMap(resolve), bounds: bounds.flat(), isComplete: bounds.every((each) => each.length > 0) };
}

export function readComparisons(expr: Expr): Comparisons {
  return { all: listFromTree(expr), conjuncts: listConjuncts(expr).map(readComparison) };
}

function listConjuncts(expr: Expr): Expr[] {
  const { exprKind: kind } = expr;
  return kind.case === "callExpr" && kind.value.function === "_&&_" ? kind.value.args.flatMap(listConjuncts) : [expr];
}

const listFromTree = (expr: Expr): Comparison[] => [...childrenOf(expr).flatMap(listFromTree), ...readComparison(expr)];

/** Returns the expression as a comparison; empty if its outermost operator is not a comparison. */
function readComparison({ exprKind: kind }: Expr): Comparison[] {
  if (kind.case !== "callExpr" || !COMPARISONS.includes(kind.value.function)) return [];
  const [left, right] = kind.value.args;
  if (left === undefined || right === undefined) return [];
  const operator = kind.value.function.slice(1, -1);
  return [...toComparison(left, right, operator), ...toComparison(right, left, MIRRORED[operator] ?? operator)];
}

const MIRRORED: Readonly<Record<string, string>> = { "<": ">", "<=": ">=", ">": "<", ">=": "<=" };

function toComparison(member: Expr, number: Expr, operator: string): Comparison[] {
  const path = readParameterPath(member);
  const value = path === null ? null : readNumber(unwrapConversion(number));
  return path === null || value === null ? [] : [{ path, operator, value }];
}

/** Returns the members of `params` that the expression reads; null for any other expression. */
export function readParameterPath(expr: Expr): readonly string[] | null {
  const [root, ...path] = isOptional(expr) ? [] : (findRequestPath(unwrapConversion(expr)) ?? []);
  return root === "params" && path.length > 0 ? path : null;
}

/** Returns true if the expression reads an optional member, which is not a number. */
const isOptional = (expr: Expr): boolean =>
  (expr.exprKind.case === "callExpr" && [OPTIONAL_INDEX, OPTIONAL_SELECT].includes(expr.exprKind.value.function)) ||
  childrenOf(expr).some(isOptional);

/** Returns the operand of `double(params.amount)`. Other conversions change the value. */
function unwrapConversion(expr: Expr): Expr {
  const { exprKind: kind } = expr;
  if (kind.case !== "callExpr" || kind.value.function !== "double") return expr;
  return kind.value.args[0] ?? expr;
}

function readNumber(expr: Expr): Comparison["value"] | null {
  const { exprKind: kind } = expr;
  if (kind.case === "constExpr") {
    const { constantKind: constant } = kind.value;
    const isNumber =
      constant.case === "int64Value" || constant.case === "uint64Value" || constant.case === "doubleValue";
    if (!isNumber) return null;
    const value = Number(constant.value);
    // A larger integer would be rounded.
    const isExact = typeof constant.value === "bigint" ? Number.isSafeInteger(value) : Number.isFinite(value);
    return isExact ? value : null;
  }
  return readNames(expr);
}

function readNamedNumber(
  [first = "", ...members]: readonly string[],
  definition: Pick<PolicyDocument, "data" | "let">,
): number | null {
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
