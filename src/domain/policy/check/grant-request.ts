/** Checks the terms of a grant against the policies before it is recorded. */
import { compileCondition, compileExpression } from "../condition/condition.ts";
import type { CompiledPolicySet } from "../compile/compile.ts";
import { Evaluation } from "../decide/evaluation.ts";
import { findRedactedPaths } from "../decide/redact.ts";
import type { GrantTerms } from "../policy-types.ts";
import type { ActionRequest } from "../../actions.ts";
import { inferParamsType } from "./params-type.ts";
import { findRedactedRead } from "./redacted-reads.ts";
import { findTypeFault } from "./type-check.ts";

type Target = Pick<ActionRequest, "agent_id" | "tool" | "operation">;

/**
 * Returns the fault of a grant's expression; null if it has none. The expression must have valid types, given the tool
 * schemas of the policies, and must not read attributes or redacted parameters.
 * @param purpose `condition` for the scope, `sum` for the amount
 */
export function findGrantExpressionFault(
  set: CompiledPolicySet,
  target: Target,
  source: string,
  purpose: "condition" | "sum",
): string | null {
  const compiled = purpose === "condition" ? compileCondition(source) : compileExpression(source, "expression of sum");
  if (!compiled.ok) return compiled.message;
  const { readsAttributes } = "condition" in compiled ? compiled.condition : compiled.expression;
  if (readsAttributes)
    return "a grant depends on the request alone, and not on groups, roles or the registration of the agent";
  // The grantor could infer a redacted value from the actions that the grant covers.
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

/**
 * Returns the largest caps of the rules that could require approval for this agent, tool and operation with any
 * parameters; null if no rule allows grants. This is only an upper bound, because each use is decided by the rules that
 * match it.
 */
export function findLargestGrantTerms(compiled: CompiledPolicySet, target: Target): GrantTerms | null {
  const request = { ...target, params: {}, context: {} };
  const principal = { key_id: "", name: "", agent_id: null, owner: null };
  const evaluation = new Evaluation(compiled, request, { principal }, 0);
  const possible = evaluation
    .applicablePolicies()
    .filter(({ shadow }) => !shadow)
    .flatMap((policy) => evaluation.rules(policy).flatMap((rule) => rule.approval?.grants ?? []));
  if (possible.length === 0) return null;
  return {
    count: Math.max(...possible.map(({ count }) => count)),
    for_ms: Math.max(...possible.map(({ for_ms }) => for_ms)),
  };
}
