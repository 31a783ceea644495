/** Selects the members of a pending request that approvers see first. Affects only the display, not the decision. */
import { foldName } from "../../names.ts";
import type { CompiledPolicySet, CompiledRule } from "../compile/compile.ts";
import { matchNames } from "../compile/name-patterns.ts";
import { rulesForTool } from "../compile/rule-index.ts";

/** Maximum members shown first; more would push the others out of view. */
const MAX_SHOWN = 16;

export interface DecidedAction {
  agent_id: string;
  tool: string;
  operation: string;
  policy: string | null;
  rule: string | null;
}

/**
 * Returns JSON pointers into `{params, context}`: those that `approval.show` of the deciding rule lists; then those that
 * conditions read, of the deciding rule, of the rules ahead of it that are about the same operation (they did not match, and
 * often an amount is why), and of the policy's limits for it.
 *
 * @param set the active one. Nothing comes first where it no longer has the policy or the rule
 */
export function findMembersShownFirst(set: CompiledPolicySet, action: DecidedAction): string[] {
  const policy = set.policies.find(({ name }) => name === action.policy);
  if (policy === undefined || action.rule === null) return [];
  const [agent, tool, operation] = [action.agent_id, action.tool, action.operation].map((name) =>
    policy.caseSensitive ? name : foldName(name),
  ) as [string, string, string];
  const concerns = (rule: CompiledRule): boolean =>
    matchNames(rule.operations, operation) && matchNames(rule.agents, agent);
  const limits = policy.limits.filter(({ tools, rule }) => matchNames(tools, tool) && concerns(rule));
  const rules = [...rulesForTool(policy, tool)].filter(concerns);
  const at = rules.findIndex(({ name }) => name === action.rule);
  const deciding = rules[at] ?? limits.find(({ rule }) => rule.name === action.rule)?.rule;
  if (deciding === undefined) return [];
  const ahead = at < 0 ? [] : rules.slice(0, at);
  const pointers = new Set([
    ...deciding.show,
    ...(deciding.condition?.members ?? []),
    ...ahead.flatMap(({ condition }) => condition?.members ?? []),
    ...limits.flatMap(({ rule, per, sum }) =>
      [sum?.of, per, rule.condition].flatMap((expression) => expression?.members ?? []),
    ),
  ]);
  return [...pointers].slice(0, MAX_SHOWN);
}
