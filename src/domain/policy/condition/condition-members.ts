/** Finds the members of a request that an expression reads. Approvers see them first. */
import { escapePointerToken } from "../../json-pointer.ts";
import { childrenOf, readAccess, type Expr } from "./cel-tree.ts";

/** Returns JSON pointers into `{params, context}`, without duplicates, in the order of the expression. */
export function findMembersRead(expression: Expr): string[] {
  // `params` without a member name is not a member.
  const members = findPathsRead(expression).filter((path) => path.length > 1);
  return [...new Set(members.map(pointerOf))];
}

/**
 * Returns the paths into `{params, context}` that an expression reads. The path `["params"]` can read every parameter,
 * such as in `params[name]`.
 */
export function findPathsRead(expr: Expr): string[][] {
  const path = findRequestPath(expr);
  return path === null ? childrenOf(expr).flatMap(findPathsRead) : [path];
}

/** Returns the path of an expression such as `params.a["b"].c`; null for other expressions. */
export function findRequestPath(expr: Expr): string[] | null {
  const { exprKind: kind } = expr;
  if (kind.case === "identExpr") {
    const name = kind.value.name.replace(/^\./, "");
    return name === "params" || name === "context" ? [name] : null;
  }
  const access = readAccess(expr);
  const path = access === null || access.name === null ? null : findRequestPath(access.owner);
  return path === null ? null : [...path, access?.name as string];
}

const pointerOf = (path: readonly string[]): string => path.map((name) => `/${escapePointerToken(name)}`).join("");

/** Pattern of an entry in `approval.show`. */
export const MEMBER_PATTERN = String.raw`^(params|context)(\.[A-Za-z_][A-Za-z0-9_]*|\["[^"\\]+"\])+$`;

/** Returns the JSON pointer of a member such as `params.order["total net"]`. */
export function parseMember(text: string): string {
  return pointerOf(
    [...text.matchAll(/([A-Za-z_][A-Za-z0-9_]*)|\["([^"]+)"\]/g)].map(([, name, quoted]) => name ?? quoted ?? ""),
  );
}
