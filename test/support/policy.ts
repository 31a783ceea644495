/** Short constructors for policies, rules and requests. */
import type { ActionRequest } from "../../src/domain/actions.ts";
import { buildPolicySet, compilePolicySet, type CompiledPolicySet } from "../../src/domain/policy/compile/compile.ts";
import type { Facts, PolicyDocument, RuleDocument } from "../../src/domain/policy/policy-types.ts";

export const NOW = Date.UTC(2026, 0, 15, 10);
export const FACTS: Facts = { principal: { key_id: "k1", name: "support", agent_id: null, owner: null } };

export function rule(name: string, effect: RuleDocument["effect"], more: Partial<RuleDocument> = {}): RuleDocument {
  return { name, effect, ...more };
}

export function policy(name: string, rules: RuleDocument[], more: Partial<PolicyDocument> = {}): PolicyDocument {
  return { policy: name, rules, ...more };
}

/** Compiles policies in the given order. `buildPolicySet` sorts them. */
export function compile(...documents: PolicyDocument[]): CompiledPolicySet {
  return compilePolicySet(
    buildPolicySet(documents.map((definition) => ({ policy: definition.policy, version: 1, definition }))),
  );
}

export function action(
  tool: string,
  operation: string,
  params: ActionRequest["params"] = {},
  agent_id = "support-1",
): ActionRequest {
  return { agent_id, tool, operation, params, context: {} };
}
