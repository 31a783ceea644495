/**
 * Finds rules that cannot have an effect. A policy with such rules is still accepted, unless the caller treats warnings
 * as errors.
 */
import { parseExpression } from "../condition/cel-parse.ts";
import { isGlob, matchGlob } from "../compile/glob.ts";
import { normalizePatterns } from "../compile/name-patterns.ts";
import type { PolicyDocument, RuleDocument } from "../policy-types.ts";
import { findContradiction } from "./contradictions.ts";

export interface RuleWarning {
  /** RFC 6901 pointer, relative to the policy. */
  pointer: string;
  message: string;
  kind: "unreachable-rule" | "outside-applies-to" | "contradiction";
  /** Offset in the string at the pointer, in UTF-16 code units. */
  offset?: number;
}

/**
 * Returns warnings in the order of the rules.
 * @example A rule after one without `when` for the same tool: `the rule "b" never decides, because "a" matches the same actions first`
 */
export function findRuleWarnings(policy: PolicyDocument): RuleWarning[] {
  const warnings: RuleWarning[] = [];
  const caseSensitive = policy.case_sensitive === true;
  const { rules, limits = [] } = policy;
  for (const [kind, items] of [
    ["rules", rules],
    ["limits", limits],
  ] as const) {
    for (const [i, item] of items.entries()) {
      warnings.push(...outsideScope(policy, item, `/${kind}/${i}`, caseSensitive));
      if (item.when === undefined) continue;
      const contradiction = findContradiction(parseExpression(item.when));
      if (contradiction !== null)
        warnings.push({
          kind: "contradiction",
          pointer: `/${kind}/${i}/when`,
          message: `the condition of "${item.name}" is never true: ${contradiction.message}`,
          offset: contradiction.offset,
        });
    }
  }
  warnings.push(...unreachableRules(rules, caseSensitive));
  return warnings;
}

const asList = (value: string | string[] | undefined): string[] | null => (value === undefined ? null : [value].flat());

type Matchers = Pick<RuleDocument, "name" | "tool" | "agent">;

/** Returns a warning for each exact name that `applies_to` excludes. */
function outsideScope(
  { policy, applies_to }: PolicyDocument,
  rule: Matchers,
  at: string,
  caseSensitive: boolean,
): RuleWarning[] {
  const warnings: RuleWarning[] = [];
  const check = (member: "tool" | "agent", scope: string[] | undefined): void => {
    const names = asList(rule[member]);
    if (scope === undefined || names === null) return;
    const globs = normalizePatterns(scope, caseSensitive);
    for (const name of names) {
      const [folded] = normalizePatterns([name], caseSensitive) as [string];
      if (isGlob(name) || globs.some((glob) => matchGlob(glob, folded))) continue;
      warnings.push({
        kind: "outside-applies-to",
        pointer: `${at}/${member}`,
        message: `"${rule.name}" names the ${member} "${name}", which applies_to.${member}s of the policy "${policy}" excludes`,
      });
    }
  };
  check("tool", applies_to?.tools);
  check("agent", applies_to?.agents);
  return warnings;
}

/**
 * Maximum number of earlier rules that each rule is compared with, so that large policies are checked in linear time.
 */
const MAX_COMPARED = 200;

function unreachableRules(rules: readonly RuleDocument[], caseSensitive: boolean): RuleWarning[] {
  const warnings: RuleWarning[] = [];
  const folded = rules.map((rule) => ({
    rule,
    tool: foldList(rule.tool, caseSensitive),
    operation: foldList(rule.operation, caseSensitive),
    agent: foldList(rule.agent, caseSensitive),
  }));
  for (const [i, later] of folded.entries()) {
    const cause = folded
      .slice(Math.max(0, i - MAX_COMPARED), i)
      .find(
        (earlier) =>
          (earlier.rule.when === undefined || earlier.rule.when === later.rule.when) &&
          covers(earlier.tool, later.tool) &&
          covers(earlier.operation, later.operation) &&
          covers(earlier.agent, later.agent),
      );
    if (cause !== undefined)
      warnings.push({
        kind: "unreachable-rule",
        pointer: `/rules/${i}`,
        message: `the rule "${later.rule.name}" never decides, because "${cause.rule.name}" matches the same actions first`,
      });
  }
  return warnings;
}

function foldList(value: string | string[] | undefined, caseSensitive: boolean): readonly string[] | null {
  const names = asList(value);
  return names === null ? null : normalizePatterns(names, caseSensitive);
}

/** Returns true if `outer` matches every name that `inner` matches, and false if that is not certain. */
function covers(outer: readonly string[] | null, inner: readonly string[] | null): boolean {
  if (outer === null || outer.includes("*")) return true;
  if (inner === null) return false;
  return inner.every((name) => outer.includes(name) || (!isGlob(name) && outer.some((glob) => matchGlob(glob, name))));
}
