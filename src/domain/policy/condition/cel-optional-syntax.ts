/**
 * Reads the optional syntax of CEL, `owner.?name`, `owner[?key]`, `[?element]` and `{?key: value}`, which the parser
 * does not know. The marks become spaces, so that all offsets stay the same, and are added to the tree after parsing.
 */
import { unparse } from "@bufbuild/cel";
import { OPTIONAL_INDEX, OPTIONAL_SELECT, type CallExpr, type Expr, type ParsedExpression } from "./cel-tree.ts";

/** The positions of optional marks. */
interface Marks {
  /** The source with spaces instead of the marks. */
  source: string;
  /** Maps the offset of a dot to the offset of the mark after it. */
  readonly dots: Map<number, number>;
  /** Maps the offset of a bracket, and then the index of an element, to the offset of the element's mark. */
  readonly elements: Map<number, Map<number, number>>;
}

/** Matches a comment, a string literal, or a single character such as a bracket, a comma, a dot or a question mark. */
const TOKENS = /\/\/[^\n]*|[rR][bB]?("""|'''|["'])[^]*?(?:\1|$)|("""|'''|["'])(?:\\[^]|(?!\2)[^])*(?:\2|$)|[^\s]/g;

/**
 * Finds the marks.
 * @example findOptionalMarks('params.?n').source // "params. n"
 */
export function findOptionalMarks(source: string): Marks {
  const marks: Marks = { source, dots: new Map(), elements: new Map() };
  if (!/[.,[{]\s*\?/.test(source)) return marks;
  const open: { bracket: string; offset: number; index: number }[] = [];
  let before = { text: "", offset: -1 };
  for (const { 0: text, index: offset } of source.matchAll(TOKENS)) {
    if (text.startsWith("//")) continue;
    const inner = open.at(-1);
    if (text === "?") {
      const isElement = before.text === "," || before.offset === inner?.offset;
      if (before.text === ".") marks.dots.set(before.offset, offset);
      else if (isElement && inner !== undefined && inner.bracket !== "(") {
        const indexes = marks.elements.get(inner.offset) ?? new Map<number, number>();
        marks.elements.set(inner.offset, indexes.set(inner.index, offset));
      }
    } else if (text === "(" || text === "[" || text === "{") open.push({ bracket: text, offset, index: 0 });
    else if (text === ")" || text === "]" || text === "}") open.pop();
    else if (text === "," && inner !== undefined) inner.index++;
    before = { text, offset };
  }
  const characters = source.split("");
  for (const offset of offsetsOf(marks)) characters[offset] = " ";
  return { ...marks, source: characters.join("") };
}

const offsetsOf = ({ dots, elements }: Marks): number[] => [
  ...dots.values(),
  ...[...elements.values()].flatMap((indexes) => [...indexes.values()]),
];

/** Returns the offset of a mark that no expression used, or undefined. */
export const findUnusedMark = (marks: Marks): number | undefined => offsetsOf(marks).sort((a, b) => a - b)[0];

/** Makes an expression optional if it has a mark, and removes the mark. */
export function applyOptionalMarks(expr: Expr, parsed: ParsedExpression, { dots, elements }: Marks): void {
  if (dots.size === 0 && elements.size === 0) return;
  const { exprKind: kind } = expr;
  const offset = parsed.sourceInfo?.positions[expr.id.toString()] ?? -1;
  const indexes = elements.get(offset);
  if (kind.case === "selectExpr" && !kind.value.testOnly && dots.delete(offset)) {
    const { operand, field } = kind.value;
    const name: Expr = part(expr.id, {
      case: "constExpr",
      value: { $typeName: "cel.expr.Constant", constantKind: { case: "stringValue", value: field } },
    });
    print(expr, parsed, { case: "selectExpr", value: { ...kind.value, field: `?${field}` } });
    expr.exprKind = callOf(OPTIONAL_SELECT, [operand as Expr, name]);
  } else if (kind.case === "callExpr" && kind.value.function === "_[_]" && indexes?.delete(0) === true) {
    const [owner, key] = kind.value.args as [Expr, Expr];
    const shown = part(key.id, {
      case: "identExpr",
      value: { $typeName: "cel.expr.Expr.Ident", name: `?${unparse({ ...parsed, expr: key })}` },
    });
    print(expr, parsed, callOf("_[_]", [owner, { ...shown, id: 0n }]));
    expr.exprKind = callOf(OPTIONAL_INDEX, [owner, key]);
  } else if (kind.case === "listExpr") {
    const used = [...(indexes?.keys() ?? [])].filter((index) => index < kind.value.elements.length);
    kind.value.optionalIndices = used;
    for (const index of used) indexes?.delete(index);
  } else if (kind.case === "structExpr" && kind.value.messageName === "") {
    for (const [index, entry] of kind.value.entries.entries()) entry.optionalEntry = indexes?.delete(index) ?? false;
  }
}

const part = (id: bigint, exprKind: Expr["exprKind"]): Expr => ({ $typeName: "cel.expr.Expr", id, exprKind });

function callOf(name: string, args: Expr[]): { case: "callExpr"; value: CallExpr } {
  return { case: "callExpr", value: { $typeName: "cel.expr.Expr.Call", function: name, args } };
}

/** Sets the form in which the printer prints an expression, because the printer does not support optional operators. */
function print(expr: Expr, { sourceInfo }: ParsedExpression, exprKind: Expr["exprKind"]): void {
  // The printer looks up each id among the macros, so give the printed form a new id.
  if (sourceInfo !== undefined) sourceInfo.macroCalls[expr.id.toString()] = part(0n, exprKind);
}
