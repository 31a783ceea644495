/** Parses CEL source. Functions with a qualified name, such as `sets.contains`, become calls without a target. */
import { parse } from "@bufbuild/cel";
import { FUNCTION_NAMES } from "./cel.ts";
import { childrenOf, type Expr, type ParsedExpression } from "./cel-tree.ts";

export type { Expr, ParsedExpression } from "./cel-tree.ts";

const QUALIFIED: ReadonlySet<string> = new Set(FUNCTION_NAMES.filter((name) => name.includes(".")));

/** First parts of qualified names, such as `sets`. */
export const NAMESPACES: ReadonlySet<string> = new Set([...QUALIFIED].map((name) => name.split(".")[0] as string));

/**
 * Trees of recent sources. A policy is checked, typed, searched for contradictions and compiled one after the other, and
 * each of these reads the trees of all its conditions. Parsing takes longer than all of these.
 */
const recentTrees = new Map<string, ParsedExpression>();
/** A tree uses some hundred bytes for each character of its source. */
const MAX_RECENT_CHARACTERS = 65_536;
let recentCharacters = 0;

/** Returns the tree of a source. Do not change it. Throws the parser's error if the source is not CEL. */
export function parseExpression(source: string): ParsedExpression {
  const recent = recentTrees.get(source);
  if (recent !== undefined) return recent;
  const parsed = parse(source);
  qualifyCalls(parsed.expr);
  recentCharacters += source.length;
  if (recentCharacters > MAX_RECENT_CHARACTERS) {
    recentTrees.clear();
    recentCharacters = source.length;
  }
  recentTrees.set(source, parsed);
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
