/**
 * Parses CEL source. Functions with a qualified name, such as `sets.contains`, become calls without a target,
 * `cel.bind` a comprehension without elements, and `history.any` a comprehension over the past actions. `facts.account`
 * becomes one name, so that each fact is a variable.
 */
import { parse } from "@bufbuild/cel";
import { FUNCTION_NAMES } from "./cel.ts";
import { expandHistoryMacro } from "./cel-history.ts";
import { qualifyFact } from "./source-facts.ts";
import { childrenOf, UNUSED_VARIABLE, type CallExpr, type Expr, type ParsedExpression } from "./cel-tree.ts";

export type { Expr, ParsedExpression } from "./cel-tree.ts";

const QUALIFIED: ReadonlySet<string> = new Set(FUNCTION_NAMES.filter((name) => name.includes(".")));

const BINDING = "cel.bind";

/** First segments of qualified names, such as `sets`. */
export const NAMESPACES: ReadonlySet<string> = new Set(
  [...QUALIFIED, BINDING].map((name) => name.split(".")[0] as string),
);

/**
 * Cache of parsed conditions, by source. The syntax check, the type check, the search for contradictions and the
 * compilation all need the trees of a policy's conditions, and parsing takes longer than all these steps together.
 */
const recentTrees = new Map<string, ParsedExpression>();
/** Maximum total length of the cached sources. A tree uses some hundred bytes for each character of its source. */
const MAX_RECENT_CHARACTERS = 65_536;
let recentCharacters = 0;

/**
 * Parses a source. Callers must not change the returned tree, because it is cached. Throws the parser's error if the
 * source is not CEL.
 */
export function parseExpression(source: string): ParsedExpression {
  const recent = recentTrees.get(source);
  if (recent !== undefined) return recent;
  const parsed = parse(source);
  qualifyCalls(parsed.expr, parsed);
  recentCharacters += source.length;
  if (recentCharacters > MAX_RECENT_CHARACTERS) {
    recentTrees.clear();
    recentCharacters = source.length;
  }
  recentTrees.set(source, parsed);
  return parsed;
}

function qualifyCalls(expr: Expr, parsed: ParsedExpression): void {
  qualifyFact(expr);
  const { exprKind: kind } = expr;
  if (kind.case === "callExpr") {
    const call = kind.value;
    const target = call.target?.exprKind;
    const name = target?.case === "identExpr" ? `${target.value.name}.${call.function}` : "";
    if (QUALIFIED.has(name)) {
      call.function = name;
      delete call.target;
    } else if (name === BINDING) expandBinding(expr, call, parsed);
    else expandHistoryMacro(expr, call, parsed);
  }
  for (const child of childrenOf(expr)) qualifyCalls(child, parsed);
}

/**
 * Turns `cel.bind(name, value, body)` into a comprehension that accumulates nothing: its accumulator is the name. Does
 * not change a call whose first argument is not a name, which then fails because no function is called `cel.bind`.
 */
function expandBinding(expr: Expr, call: CallExpr, { sourceInfo }: ParsedExpression): void {
  const [name, value, body] = call.args;
  if (name?.exprKind.case !== "identExpr" || value === undefined || body === undefined || call.args.length > 3) return;
  const part = (exprKind: Expr["exprKind"]): Expr => ({ $typeName: "cel.expr.Expr", id: expr.id, exprKind });
  // Give the call a new id, because the printer looks up each id among the macros.
  if (sourceInfo !== undefined) sourceInfo.macroCalls[expr.id.toString()] = { ...expr, id: 0n };
  const never = { $typeName: "cel.expr.Constant", constantKind: { case: "boolValue", value: false } } as const;
  expr.exprKind = {
    case: "comprehensionExpr",
    value: {
      $typeName: "cel.expr.Expr.Comprehension",
      iterVar: UNUSED_VARIABLE,
      iterVar2: "",
      iterRange: part({
        case: "listExpr",
        value: { $typeName: "cel.expr.Expr.CreateList", elements: [], optionalIndices: [] },
      }),
      accuVar: name.exprKind.value.name,
      accuInit: value,
      loopCondition: part({ case: "constExpr", value: never }),
      loopStep: name,
      result: body,
    },
  };
}
