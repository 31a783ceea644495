/**
 * Detects expressions that read attributes: groups and metadata of the agent, or groups and roles of its principal. A
 * decision records attributes only if a policy reads one of them. Other members of `principal` are always recorded.
 */
import { childrenOf, readAccess, type Expr } from "./cel-tree.ts";

const VARIABLES: readonly string[] = ["agent_groups", "agent_metadata"];

/** Members of `principal` that every decision records. They are not attributes. */
const RECORDED_MEMBERS: readonly string[] = ["key_id", "name", "agent_id", "owner", "claims"];

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
    RECORDED_MEMBERS.includes(access.name) &&
    !VARIABLES.includes(access.owner.exprKind.value.name);
  return !isRecorded && childrenOf(expr).some(readsAttributes);
}
