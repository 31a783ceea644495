/**
 * Selects the members of a pending request that approvers see first, and renders its preview. Affects only the display,
 * not the decision.
 */
import type { JsonObject } from "../../json.ts";
import type { CompiledLimit, CompiledPolicySet, CompiledRule } from "../compile/compile.ts";
import { matchNamesOf } from "./name-matches.ts";
import { type PreviewedAction, type PreviewPart, renderPreview } from "./preview.ts";
import { redactParams } from "./redact.ts";

/** Maximum number of members that are displayed first. More members would push the others out of view. */
const MAX_SHOWN = 16;

export interface DecidedAction {
  agent_id: string;
  tool: string;
  operation: string;
  policy: string | null;
  rule: string | null;
}

/** The preview of a request, and the members that approvers see before the others. */
interface Presentation {
  /** The preview of the deciding rule; null if the rule has no preview. */
  preview: string | null;
  /** JSON pointers of the members of `params` and `context` that are displayed first. */
  shown_first: string[];
}

/**
 * Returns the preview and the members that approvers of an action see first. Every view of a request uses this
 * function.
 * @param set the active set. If it no longer contains the policy or the rule, the list of members is empty
 * @example presentRequest(set, { ...row, params, context }).preview // 'Refund 120 "EUR" to "cus_1"'
 */
export function presentRequest(set: CompiledPolicySet, action: DecidedAction & PreviewedAction): Presentation {
  const { preview, shown_first } = findPresentation(set, action);
  return {
    preview:
      preview === null
        ? null
        : renderPreview(preview, { ...action, params: redactParams(set, action, action.params as JsonObject) }),
    shown_first,
  };
}

/**
 * Returns the parts of the deciding rule's preview, or null if it has none, and the members that approvers see first.
 * The list of members is empty if `set` no longer contains the rule.
 */
export function findPresentation(
  set: CompiledPolicySet,
  action: DecidedAction,
): { preview: readonly PreviewPart[] | null; shown_first: string[] } {
  const found = findDecidingRule(set, action);
  return { preview: found?.deciding.preview ?? null, shown_first: found === null ? [] : listMembersShownFirst(found) };
}

/** The rule that decided, the earlier rules for the same operation, and the limits that apply. */
interface DecidingRule {
  deciding: CompiledRule;
  ahead: readonly CompiledRule[];
  limits: readonly CompiledLimit[];
}

function findDecidingRule(set: CompiledPolicySet, action: DecidedAction): DecidingRule | null {
  const policy = set.policies.find(({ name }) => name === action.policy);
  if (policy === undefined || action.rule === null) return null;
  const matches = matchNamesOf(set, action);
  const limits = policy.limits.filter((limit) => matches.matchesLimit(policy, limit));
  const rules = matches.rules(policy);
  const at = rules.findIndex(({ name }) => name === action.rule);
  const deciding = rules[at] ?? limits.find(({ rule }) => rule.name === action.rule)?.rule;
  return deciding === undefined ? null : { deciding, ahead: at < 0 ? [] : rules.slice(0, at), limits };
}

/**
 * Returns JSON pointers into `{params, context}`, in this order: the members in `approval.show` of the deciding rule,
 * in its preview, and in conditions. The conditions are those of the deciding rule, of earlier rules for the same
 * operation, and of the policy's limits. Includes earlier rules because they often did not match only because of an
 * amount.
 */
function listMembersShownFirst({ deciding, ahead, limits }: DecidingRule): string[] {
  const pointers = new Set([
    ...deciding.show,
    ...(deciding.preview ?? []).flatMap((part) => ("pointer" in part ? [part.pointer] : [])),
    ...(deciding.condition?.members ?? []),
    ...ahead.flatMap(({ condition }) => condition?.members ?? []),
    ...limits.flatMap(({ rule, per, sum }) =>
      [sum === null || "usage" in sum.of ? null : sum.of, per, rule.condition].flatMap(
        (expression) => expression?.members ?? [],
      ),
    ),
  ]);
  return [...pointers].slice(0, MAX_SHOWN);
}
