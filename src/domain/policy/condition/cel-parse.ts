/** Parses CEL source. Functions with a qualified name, such as `sets.contains`, become calls without a target. */
import { parse } from "@bufbuild/cel";
import { FUNCTION_NAMES } from "./cel.ts";
import { childrenOf, type Expr, type ParsedExpression } from "./cel-tree.ts";

export type { Expr, ParsedExpression } from "./cel-tree.ts";

const QUALIFIED: ReadonlySet<string> = new Set(FUNCTION_NAMES.filter((name) => name.includes(".")));

/** First parts of qualified names, such as `sets`. */
export const NAMESPACES: ReadonlySet<string> = new Set([...QUALIFIED].map((name) => name.split(".")[0] as string));

/** Throws the parser's error if the source is not CEL. */
export function parseExpression(source: string): ParsedExpression {
  const parsed = parse(source);
  qualifyCalls(parsed.expr);
  return parsed;
}

function qualifyCalls(expr: Expr): void {
  const { exprKind: kind } = expr;
  if (kind.case === "callExpr") {
    const call = kind.value;
    const target = call.target?.exprKind;
    const name = target?.case === "identExpr" ? `${target.value.name}.${call.function}` : "";
    if (QUALIFIED.has(name)) {
      call.function = name;
      delete call.target;
    }
  }
  childrenOf(expr).forEach(qualifyCalls);
}
