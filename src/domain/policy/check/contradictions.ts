/** Finds comparisons with constants that exclude each other, such as `params.a > 100 && params.a < 50`. */
import { unparse } from "@bufbuild/cel";
import type { Expr, ParsedExpression } from "../condition/cel-tree.ts";

interface Comparison {
  /** The compared expression as CEL source. */
  subject: string;
  operator: string;
  constant: number | string | boolean;
  node: Expr;
}

/** For each operator, the operator with the same meaning when both sides are swapped. */
const MIRRORED: Readonly<Record<string, string>> = {
  "_==_": "_==_",
  "_<_": "_>_",
  "_<=_": "_>=_",
  "_>_": "_<_",
  "_>=_": "_<=_",
};

/**
 * Returns the first pair of comparisons in one conjunction that no value can satisfy; null if there is no such pair.
 * @example findContradiction(parse('params.a > 9 && params.a < 5')) // { message: '"params.a > 9" excludes …', offset: 16 }
 */
export function findContradiction(parsed: ParsedExpression): { message: string; offset: number } | null {
  const bySubject = new Map<string, Comparison[]>();
  for (const operand of conjunctsOf(parsed.expr)) {
    const comparison = readComparison(operand, parsed);
    if (comparison === null) continue;
    const earlier = bySubject.get(comparison.subject) ?? [];
    const other = earlier.find((candidate) => excludes(candidate, comparison));
    if (other !== undefined) {
      const [a, b] = [other, comparison].map(({ node }) => unparse({ ...parsed, expr: node }));
      return {
        message: `"${a ?? ""}" excludes "${b ?? ""}"`,
        offset: parsed.sourceInfo?.positions[comparison.node.id.toString()] ?? 0,
      };
    }
    bySubject.set(comparison.subject, [...earlier, comparison]);
  }
  return null;
}

function conjunctsOf(expr: Expr): Expr[] {
  const { exprKind: kind } = expr;
  if (kind.case === "callExpr" && kind.value.function === "_&&_") return kind.value.args.flatMap(conjunctsOf);
  return [expr];
}

function readComparison(node: Expr, parsed: ParsedExpression): Comparison | null {
  const { exprKind: kind } = node;
  if (kind.case !== "callExpr" || !(kind.value.function in MIRRORED)) return null;
  const [left, right] = kind.value.args as [Expr, Expr];
  const source = (expr: Expr): string => unparse({ ...parsed, expr });
  const constant = constantOf(right);
  if (constant !== null) return { subject: source(left), operator: kind.value.function, constant, node };
  const mirrored = constantOf(left);
  if (mirrored === null) return null;
  return { subject: source(right), operator: MIRRORED[kind.value.function] as string, constant: mirrored, node };
}

function constantOf({ exprKind: kind }: Expr): number | string | boolean | null {
  if (kind.case !== "constExpr") return null;
  const { constantKind: constant } = kind.value;
  switch (constant.case) {
    case "int64Value":
    case "uint64Value":
      // Numbers beyond 2^53 are not exact. A wrong warning is worse than no warning.
      return constant.value >= -(2n ** 53n) && constant.value <= 2n ** 53n ? Number(constant.value) : null;
    case "doubleValue":
    case "stringValue":
    case "boolValue":
      return constant.value;
    default:
      return null;
  }
}

/** Returns true if no value satisfies both comparisons. */
function excludes(a: Comparison, b: Comparison): boolean {
  if (a.operator === "_==_" && b.operator === "_==_") return a.constant !== b.constant;
  if (typeof a.constant !== "number" || typeof b.constant !== "number") return false;
  const [x, y] = [rangeOf(a.operator, a.constant), rangeOf(b.operator, b.constant)];
  const low = Math.max(x.low, y.low);
  const high = Math.min(x.high, y.high);
  if (low !== high) return low > high;
  // The two bounds are equal, and at least one of them excludes the value.
  return [x, y].some((range) => (range.low === low && range.lowOpen) || (range.high === high && range.highOpen));
}

interface Range {
  low: number;
  high: number;
  lowOpen: boolean;
  highOpen: boolean;
}

function rangeOf(operator: string, constant: number): Range {
  const open = operator === "_<_" || operator === "_>_";
  const everything = { low: -Infinity, high: Infinity, lowOpen: false, highOpen: false };
  if (operator === "_==_") return { ...everything, low: constant, high: constant };
  return operator.startsWith("_<")
    ? { ...everything, high: constant, highOpen: open }
    : { ...everything, low: constant, lowOpen: open };
}
