/**
 * Parses CEL source, and rewrites the tree:
 * - Calls of functions with a qualified name, such as `sets.contains`, become calls without a target.
 * - `cel.bind`, `optMap` and `optFlatMap` become comprehensions without elements.
 * - Macros such as `history.any` become comprehensions over the past actions.
 * - `facts.account` becomes one name, so that each fact is a variable.
 *
 * The parser does not know `owner.?name`; see cel-optional-syntax.ts.
 */
import { parse } from "@bufbuild/cel";
import { FUNCTION_NAMES } from "./cel.ts";
import { expandHistoryMacro } from "./cel-history.ts";
import { qualifyFact } from "./source-facts.ts";
import { applyOptionalMarks, findOptionalMarks, findUnusedMark } from "./cel-optional-syntax.ts";
import {
  childrenOf,
  OPTIONAL_MACROS,
  UNUSED_VARIABLE,
  type CallExpr,
  type Expr,
  type ParsedExpression,
} from "./cel-tree.ts";

export type { Expr, ParsedExpression } from "./cel-tree.ts";

const QUALIFIED: ReadonlySet<string> = new Set(FUNCTION_NAMES.filter((name) => name.includes(".")));

const BINDING = "cel.bind";

/** First segments of qualified names, such as `sets`. */
export const FUNCTION_NAMESPACES: ReadonlySet<string> = new Set(
  [...QUALIFIED, BINDING].map((name) => name.split(".")[0] as string),
);

/**
 * Cache of parsed conditions, keyed by their source. The syntax check, the type check, the search for contradictions
 * and the compilation all need the trees. Parsing takes longer than these steps together.
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
  const marks = findOptionalMarks(source);
  const parsed = parse(marks.source);
  expandTree(parsed.expr, (expr) => {
    applyOptionalMarks(expr, parsed, marks);
    qualifyFact(expr);
    if (expr.exprKind.case === "callExpr") expandCall(expr, expr.exprKind.value, parsed);
  });
  const unused = findUnusedMark(marks);
  if (unused !== undefined) throw Object.assign(new Error('"?" is not possible here'), atOffset(unused));
  recentCharacters += source.length;
  if (recentCharacters > MAX_RECENT_CHARACTERS) {
    recentTrees.clear();
    recentCharacters = source.length;
  }
  recentTrees.set(source, parsed);
  return parsed;
}

/** Returns the position of a fault in the form of the parser's errors. */
const atOffset = (offset: number) => ({ location: { start: { offset } } });

/** Calls `change` for each node, parents before children. */
function expandTree(expr: Expr, change: (expr: Expr) => void): void {
  change(expr);
  for (const child of childrenOf(expr)) expandTree(child, change);
}

function expandCall(expr: Expr, call: CallExpr, parsed: ParsedExpression): void {
  const target = call.target?.exprKind;
  const name = target?.case === "identExpr" ? `${target.value.name}.${call.function}` : "";
  if (QUALIFIED.has(name)) {
    call.function = name;
    delete call.target;
  } else if (name === BINDING) expandBinding(expr, call.args, UNUSED_VARIABLE, parsed);
  else if (call.target !== undefined && Object.hasOwn(OPTIONAL_MACROS, call.function))
    expandBinding(expr, optionalOperands(call), OPTIONAL_MACROS[call.function] as string, parsed);
  else expandHistoryMacro(expr, call, parsed);
}

/** Returns the operands of `target.optMap(name, body)` in the order of `cel.bind`. */
function optionalOperands({ target, args }: CallExpr): Expr[] {
  const [name, ...rest] = args;
  return [name, target, ...rest].filter((operand) => operand !== undefined);
}

/**
 * Turns `cel.bind(name, value, body)` into a comprehension without elements, whose accumulator is the name. Does not
 * change a call without a name, which then fails because no function has this name.
 * @param operands name, value and body
 * @param element name of the element variable, which distinguishes `cel.bind` from the macros of optionals
 */
function expandBinding(expr: Expr, operands: readonly Expr[], element: string, { sourceInfo }: ParsedExpression): void {
  const [name, value, body] = operands;
  if (name?.exprKind.case !== "identExpr" || value === undefined || body === undefined || operands.length > 3) return;
  const part = (exprKind: Expr["exprKind"]): Expr => ({ $typeName: "cel.expr.Expr", id: expr.id, exprKind });
  // Give the call a new id, because the printer looks up each id among the macros.
  if (sourceInfo !== undefined) sourceInfo.macroCalls[expr.id.toString()] = { ...expr, id: 0n };
  const never = { $typeName: "cel.expr.Constant", constantKind: { case: "boolValue", value: false } } as const;
  expr.exprKind = {
    case: "comprehensionExpr",
    value: {
      $typeName: "cel.expr.Expr.Comprehension",
      iterVar: element,
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
