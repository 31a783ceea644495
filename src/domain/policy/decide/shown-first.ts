/** Selects what approvers of a pending request see first. Affects only the display, not the decision. */
import { foldName } from "../../names.ts";
import type { CompiledLimit, CompiledPolicySet, CompiledRule } from "../compile/compile.ts";
import { matchNames } from "../compile/name-patterns.ts";
import { rulesForTool } from "../compile/rule-index.ts";
import { type PreviewedAction, renderPreview } from "./preview.ts";

/** Maximum members shown first; more would push the others out of view. */
const MAX_SHOWN = 16;

export interface DecidedAction {
  agent_id: string;
  tool: string;
  operation: string;
  policy: string | null;
  rule: string | null;
}

/** What approvers see of a request before its parameters. */
export interface Presentation {
  /** The sentence that the deciding rule's `approval.preview` makes; null if it has none. */
  preview: string | null;
  /** JSON pointers of the members of `params` and `context` that come first. */
  shown_first: string[];
}

/**
 * Returns what approvers see first of an action. Every display of a request uses this function.
 * @param set the active one. Nothing comes first where it no longer has the policy or the rule
 * @example presentRequest(set, { ...row, params, context }).preview // 'Refund 120 "EUR" to "cus_1"'
 */
export function presentRequest(set: CompiledPolicySet, action: DecidedAction & PreviewedAction): Presentation {
  const found = findDecidingRule(set, action);
  const preview = found?.deciding.preview ?? null;
  return {
    preview: preview === null ? null : renderPreview(preview, action),
    shown_first: found === null ? [] : listMembersShownFirst(found),
  };
}

/** The rule that decided, the rules ahead of it for the same operation, and the limits that apply. */
interface DecidingRule {
  deciding: CompiledRule;
  ahead: readonly CompiledRule[];
  limits: readonly CompiledLimit[];
}

function findDecidingRule(set: CompiledPolicySet, action: DecidedAction): DecidingRule | null {
  const policy = set.policies.find(({ name }) => name === action.policy);
  if (policy === undefined || action.rule === null) return null;
  const [agent, tool, operation] = [action.agent_id, action.tool, action.operation].map((name) =>
    policy.caseSensitive ? name : foldName(name),
  ) as [string, string, string];
  const concerns = (rule: CompiledRule): boolean =>
    matchNames(rule.operations, operation) && matchNames(rule.agents, agent);
  const limits = policy.limits.filter(({ tools, rule }) => matchNames(tools, tool) && concerns(rule));
  const rules = [...rulesForTool(policy, tool)].filter(concerns);
  const at = rules.findIndex(({ name }) => name === action.rule);
  const deciding = rules[at] ?? limits.find(({ rule }) => rule.name === action.rule)?.rule;
  return deciding === undefined ? null : { deciding, ahead: at < 0 ? [] : rules.slice(0, at), limits };
}

/**
 * Returns JSON pointers into `{params, context}`: those that `approval.show` of the deciding rule lists; then those of its
 * preview; then those that conditions read, of the deciding rule, of the rules ahead of it that are about the same operation
 * (they did not match, and often an amount is why), and of the policy's limits for it.
 */
function listMembersShownFirst({ deciding, ahead, limits }: DecidingRule): string[] {
  const pointers = new Set([
    ...deciding.show,
    ...(deciding.preview ?? []).flatMap((part) => ("pointer" in part ? [part.pointer] : [])),
    ...(deciding.condition?.members ?? []),
    ...ahead.flatMap(({ condition }) => condition?.members ?? []),
    ...limits.flatMap(({ rule, per, sum }) =>
      [sum?.of, per, rule.condition].flatMap((expression) => expression?.members ?? []),
    ),
  ]);
  return [...pointers].slice(0, MAX_SHOWN);
}
