/**
 * Finds the members of later requests that a scope does not constrain. A scope is a condition on later requests. A
 * member counts as fixed only if the scope compares it with a constant by `==`, and new members count as excluded only
 * if the scope fixes their number. Everything else counts as free, so no one can mistake a loose condition for a narrow
 * one.
 */
import { celMember, REQUEST_PARTS, type RequestPart } from "./policy/condition/cel-literal.ts";
import { parseExpression } from "./policy/condition/cel-parse.ts";
import { childrenOf, type CallExpr, type Expr, type StructExpr } from "./policy/condition/cel-tree.ts";
import { findPathsRead, findRequestPath } from "./policy/condition/condition-members.ts";

const COMPARISONS = ["_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "@in"];

/** The members of the parameters or of the context that a scope constrains. */
interface PartScope {
  /** Members that the scope reads. */
  read: Set<string>;
  /** Members that a request must have, because the scope compares them. */
  required: Set<string>;
  fixed: Set<string>;
  /** Number of members that a request must have; null if any number is possible. */
  size: number | null;
}

/**
 * Returns the members that later requests may change, in CEL, such as `params.amount`. Includes `params.*` or
 * `context.*` if later requests may have additional members. An empty list means that only equal requests are covered.
 * @param scope null covers every request. The scope must be valid
 * @param request a request that the scope is about, whose members are listed by name; null if there is none
 */
export function findFreeMembers(scope: string | null, request: Readonly<Record<RequestPart, object>> | null): string[] {
  const parts = readScope(scope);
  return REQUEST_PARTS.flatMap((part) => {
    const { read, required, fixed, size } = parts[part];
    const names = [...new Set([...Object.keys(request?.[part] ?? {}), ...read])];
    const isClosed = size !== null && size === required.size;
    // A closed scope excludes requests with members that it does not require.
    const free = names.filter((name) => !fixed.has(name) && (!isClosed || required.has(name)));
    return [...free.map((name) => celMember(part, name)), ...(isClosed ? [] : [`${part}.*`])];
  });
}

function readScope(scope: string | null): Record<RequestPart, PartScope> {
  const empty = (): PartScope => ({ read: new Set(), required: new Set(), fixed: new Set(), size: null });
  const parts = { params: empty(), context: empty() };
  if (scope === null) return parts;
  const root = parseExpression(scope).expr;
  for (const [part, name] of findPathsRead(root)) if (name !== undefined) parts[part as RequestPart].read.add(name);
  for (const condition of conjuncts(root)) readCondition(parts, condition);
  return parts;
}

/** Returns the conditions that must all be true. */
function conjuncts(expr: Expr): Expr[] {
  const call = callOf(expr);
  return call?.function === "_&&_" ? call.args.flatMap(conjuncts) : [expr];
}

function readCondition(parts: Record<RequestPart, PartScope>, condition: Expr): void {
  const call = callOf(condition);
  if (call === null || !COMPARISONS.includes(call.function)) return;
  const [left, right] = call.args as [Expr, Expr];
  const isFirst = isConstant(right);
  if (!isFirst && (!isConstant(left) || call.function === "@in")) return;
  const [subject, constant] = isFirst ? [left, right] : [right, left];
  const sized = sizeOperand(subject);
  const [part, name, ...rest] = findRequestPath(sized ?? subject) ?? [];
  if (part === undefined) return;
  const of = parts[part as RequestPart];
  const isEquality = call.function === "_==_";
  const { exprKind: kind } = constant;
  if (sized !== null) {
    if (name === undefined && isEquality) of.size = integerOf(constant);
  } else if (name === undefined) {
    if (isEquality && kind.case === "structExpr") fixWhole(of, kind.value);
  } else if (rest.length === 0) {
    of.required.add(name);
    if (isEquality) of.fixed.add(name);
  }
}

/** Applies a condition such as `params == {"a": 1}`. */
function fixWhole(of: PartScope, { entries }: StructExpr): void {
  of.size = entries.length;
  for (const { keyKind } of entries) {
    const key = keyKind.case === "mapKey" ? keyKind.value.exprKind : undefined;
    const constant = key?.case === "constExpr" ? key.value.constantKind : undefined;
    if (constant?.case !== "stringValue") continue;
    of.required.add(constant.value);
    of.fixed.add(constant.value);
  }
}

function callOf({ exprKind }: Expr): CallExpr | null {
  return exprKind.case === "callExpr" ? exprKind.value : null;
}

/** Returns the operand of `size(x)` or `x.size()`; null for other expressions. */
function sizeOperand(expr: Expr): Expr | null {
  const call = callOf(expr);
  return call?.function === "size" ? (call.target ?? call.args[0] ?? null) : null;
}

function integerOf({ exprKind }: Expr): number | null {
  const constant = exprKind.case === "constExpr" ? exprKind.value.constantKind : null;
  return constant?.case === "int64Value" || constant?.case === "uint64Value" ? Number(constant.value) : null;
}

/** Returns true for a literal: a constant, a negative number, or a list or map of literals. */
function isConstant(expr: Expr): boolean {
  const { exprKind: kind } = expr;
  if (kind.case === "constExpr") return true;
  const isComposed =
    kind.case === "listExpr" ||
    kind.case === "structExpr" ||
    (kind.case === "callExpr" && kind.value.function === "-_");
  return isComposed && childrenOf(expr).every(isConstant);
}
