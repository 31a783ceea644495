/** Checks the expressions of a permission for later requests before the permission is recorded. */
import { compileCondition, compileExpression } from "../condition/condition.ts";
import type { CompiledPolicySet } from "../compile/compile.ts";
import { readUsageName } from "../compile/compile-definition.ts";
import type { SumCap } from "../policy-types.ts";
import { findRedactedPaths } from "../decide/redact.ts";
import type { ActionRequest } from "../../actions.ts";
import { inferParamsType } from "./params-type.ts";
import { findRedactedRead } from "./redacted-reads.ts";
import { findTypeFault } from "./type-check.ts";

type Target = Pick<ActionRequest, "agent_id" | "tool" | "operation">;

/**
 * Returns the fault of an expression over later requests; null if it has none. The expression must have valid types, given the tool
 * schemas of the policies, and must not read attributes or redacted parameters.
 * @param purpose `condition` for the scope, `sum` for the amount
 */
export function findScopeFault(
  set: CompiledPolicySet,
  target: Target,
  source: string,
  purpose: "condition" | "sum",
): string | null {
  const compiled = purpose === "condition" ? compileCondition(source) : compileExpression(source, "expression of sum");
  if (!compiled.ok) return compiled.message;
  const { readsAttributes } = "condition" in compiled ? compiled.condition : compiled.expression;
  if (readsAttributes)
    return "it depends on the request alone, and not on groups, roles or the registration of the agent";
  // The author of the expression could infer a redacted value from the actions that it covers.
  const redacted = findRedactedRead(source, findRedactedPaths(set, target));
  if (redacted !== null) return `it can read ${redacted}, which a policy redacts`;
  const untyped = findTypeFault(source, purpose);
  if (untyped !== null) return untyped.message;
  for (const { definition } of set.document.policies) {
    if (definition.tools === undefined) continue;
    const fault = findTypeFault(source, purpose, inferParamsType(target, definition));
    if (fault !== null) return fault.message;
  }
  return null;
}

/** Returns why the sum of a grant or an authority is not valid for the target; null if the sum is valid. */
export function findSumFault(set: CompiledPolicySet, target: Target, { of, reserve }: SumCap): string | null {
  const isUsage = readUsageName(of) !== null;
  if (isUsage && reserve === undefined)
    return "the usage is only known after the action; add reserve, the amount that counts until then and if no report comes";
  if (!isUsage && reserve !== undefined) return "reserve belongs to a sum of usage, such as usage.cost_usd";
  return isUsage ? null : findScopeFault(set, target, of, "sum");
}
