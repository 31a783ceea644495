/**
 * Detects expressions that read attributes of the agent or its principal. Decisions record attributes only if an
 * expression reads them.
 */
import { childrenOf, readAccess, type Expr } from "./cel-tree.ts";

const VARIABLES: readonly string[] = ["agent_groups", "agent_metadata"];

/** Members of `principal` that are recorded with every decision. */
const RECORDED: readonly string[] = ["key_id", "name", "agent_id", "owner", "claims"];

/**
 * Returns true if the expression reads `agent_groups`, `agent_metadata`, `principal.groups`, `principal.roles` or all
 * of `principal`.
 */
export function readsAttributes(expr: Expr): boolean {
  const { exprKind: kind } = expr;
  if (kind.case === "identExpr") {
    const name = kind.value.name.replace(/^\./, "");
    return name === "principal" || VARIABLES.includes(name);
  }
  const access = readAccess(expr);
  const isRecorded =
    access !== null &&
    access.name !== null &&
    access.owner.exprKind.case === "identExpr" &&
    RECORDED.includes(access.name) &&
    !VARIABLES.includes(access.owner.exprKind.value.name);
  return !isRecorded && childrenOf(expr).some(readsAttributes);
}
