/** Parses CEL source. Functions with a qualified name, such as `sets.contains`, become calls without a target. */
import { parse } from "@bufbuild/cel";
import { FUNCTION_NAMES } from "./cel.ts";

export type ParsedExpression = ReturnType<typeof parse>;
type Expr = ParsedExpression["expr"];

const QUALIFIED: ReadonlySet<string> = new Set(FUNCTION_NAMES.filter((name) => name.includes(".")));

/** First parts of qualified names, such as `sets`. */
export const NAMESPACES: ReadonlySet<string> = new Set([...QUALIFIED].map((name) => name.split(".")[0] as string));

/** Throws the parser's error if the source is not CEL. */
export function parseExpression(source: string): ParsedExpression {
  const parsed = parse(source);
  qualifyCalls(parsed.expr);
  return parsed;
}

function qualifyCalls(expr: Expr | undefined): void {
  const kind = expr?.exprKind;
  if (kind === undefined) return;
  if (kind.case === "callExpr") {
    const call = kind.value;
    const target = call.target?.exprKind;
    const name = target?.case === "identExpr" ? `${target.value.name}.${call.function}` : "";
    if (QUALIFIED.has(name)) {
      call.function = name;
      delete call.target;
    }
    for (const part of [call.target, ...call.args]) qualifyCalls(part);
  } else if (kind.case === "selectExpr") qualifyCalls(kind.value.operand);
  else if (kind.case === "listExpr") kind.value.elements.forEach(qualifyCalls);
  else if (kind.case === "structExpr")
    for (const { keyKind, value } of kind.value.entries) {
      if (keyKind.case === "mapKey") qualifyCalls(keyKind.value);
      qualifyCalls(value);
    }
  else if (kind.case === "comprehensionExpr") {
    const { iterRange, accuInit, loopCondition, loopStep, result } = kind.value;
    [iterRange, accuInit, loopCondition, loopStep, result].forEach(qualifyCalls);
  }
}
