/** Finds conjunctions that are never true, such as `params.a > 100 && params.a < 50`. */
import { unparse } from "@bufbuild/cel";
import { MAX_STEPS } from "../condition/cel.ts";
import { Meter, runMetered } from "../condition/cel-meter.ts";
import { planExpression } from "../condition/cel-plan.ts";
import { childrenOf, type Expr, type ParsedExpression } from "../condition/cel-tree.ts";

type Constant = number | string | boolean;

interface Comparison {
  /** The compared expression as CEL source. */
  subject: string;
  operator: string;
  /** The constants that the subject is compared with. The operator `in` can have several. */
  constants: readonly Constant[];
  node: Expr;
}

/** For each operator, the operator with the same meaning when both sides are swapped. */
const MIRRORED: Readonly<Record<string, string>> = {
  "_==_": "_==_",
  "_!=_": "_!=_",
  "_<_": "_>_",
  "_<=_": "_>=_",
  "_>_": "_<_",
  "_>=_": "_<=_",
};

/**
 * Returns a message about the first fault of a conjunction: two conditions that no value satisfies together, or a
 * condition without variables that is false. Returns null if there is neither.
 * @example findContradiction(parseExpression('params.a > 9 && params.a < 5')) // { message: '"params.a > 9" excludes …', offset: 25 }
 */
export function findContradiction(parsed: ParsedExpression): { message: string; offset: number } | null {
  const source = (node: Expr): string => unparse({ ...parsed, expr: node });
  const fault = (node: Expr, message: string): { message: string; offset: number } => ({
    message,
    offset: parsed.sourceInfo?.positions[node.id.toString()] ?? 0,
  });
  const bySubject = new Map<string, Comparison[]>();
  for (const operand of conjunctsOf(parsed.expr)) {
    if (isFalse(operand)) return fault(operand, `"${source(operand)}" is false`);
    const comparison = readComparison(operand, source);
    const earlier = bySubject.get(comparison.subject) ?? [];
    const other = earlier.find((candidate) => excludes(candidate, comparison));
    if (other !== undefined)
      return fault(comparison.node, `"${source(other.node)}" excludes "${source(comparison.node)}"`);
    bySubject.set(comparison.subject, [...earlier, comparison]);
  }
  return null;
}

function conjunctsOf(expr: Expr): Expr[] {
  const { exprKind: kind } = expr;
  if (kind.case === "callExpr" && kind.value.function === "_&&_") return kind.value.args.flatMap(conjunctsOf);
  return [expr];
}

/** Returns true if an expression does not read variables and is false. */
function isFalse(expr: Expr): boolean {
  if (!isConstant(expr)) return false;
  try {
    return runMetered(new Meter(MAX_STEPS), () => planExpression(expr, [])({})) === false;
  } catch {
    return false;
  }
}

function isConstant(expr: Expr): boolean {
  const kind = expr.exprKind.case;
  if (kind === "constExpr") return true;
  return (kind === "callExpr" || kind === "listExpr") && childrenOf(expr).every(isConstant);
}

/**
 * Reads an expression as a comparison of a subject with constants. Reads `!e` as `e == false`, and any other expression
 * `e` without a constant operand as `e == true`.
 */
function readComparison(node: Expr, source: (expr: Expr) => string): Comparison {
  const { exprKind: kind } = node;
  const isTrue = { subject: source(node), operator: "_==_", constants: [true], node };
  if (kind.case !== "callExpr") return isTrue;
  const { function: name, args } = kind.value;
  const [left, right] = args as [Expr, Expr];
  if (name === "!_") return { ...isTrue, subject: source(left), constants: [false] };
  if (name === "@in") {
    const elements = right.exprKind.case === "listExpr" ? right.exprKind.value.elements.map(constantOf) : [null];
    const constants = elements.filter((element) => element !== null);
    return constants.length < elements.length ? isTrue : { subject: source(left), operator: name, constants, node };
  }
  if (!(name in MIRRORED)) return isTrue;
  const constant = constantOf(right);
  if (constant !== null) return { subject: source(left), operator: name, constants: [constant], node };
  const mirrored = constantOf(left);
  if (mirrored === null) return isTrue;
  return { subject: source(right), operator: MIRRORED[name] as string, constants: [mirrored], node };
}

function constantOf({ exprKind: kind }: Expr): Constant | null {
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
  const isListed = ({ operator }: Comparison): boolean => operator === "_==_" || operator === "@in";
  if (isListed(a) && isListed(b)) return !a.constants.some((constant) => b.constants.includes(constant));
  const [[first], [second]] = [a.constants, b.constants];
  if (a.operator === "_!=_" || b.operator === "_!=_")
    return first === second && (a.operator === "_==_" || b.operator === "_==_");
  if (a.operator === "@in" || b.operator === "@in" || typeof first !== "number" || typeof second !== "number")
    return false;
  const [x, y] = [rangeOf(a.operator, first), rangeOf(b.operator, second)];
  const low = Math.max(x.low, y.low);
  const high = Math.min(x.high, y.high);
  if (low !== high) return low > high;
  // Equal bounds exclude each other if at least one of them is open.
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
