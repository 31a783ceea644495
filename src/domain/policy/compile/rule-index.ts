/** Finds the policies and rules for a tool without a scan of the others. */
import { foldName } from "../../names.ts";
import type { CompiledPolicy, CompiledPolicySet, CompiledRule } from "./compile.ts";
import { matchNames } from "./name-patterns.ts";

/** Returns the policies that can apply to a tool, in the order of the set. */
export function policiesForTool({ byTool, anyTool }: CompiledPolicySet, tool: string): readonly CompiledPolicy[] {
  const named = byTool.get(foldName(tool));
  if (named === undefined) return anyTool;
  return anyTool.length === 0 ? named : [...named, ...anyTool].sort((a, b) => a.order - b.order);
}

/**
 * Yields the rules of a policy that match this tool, in written order. Does not visit rules that name only other tools.
 * @param tool the tool's name, case-folded unless the policy is case-sensitive
 */
export function* rulesForTool(policy: CompiledPolicy, tool: string): Generator<CompiledRule, void, undefined> {
  const exact = policy.exact.get(tool) ?? [];
  let e = 0;
  for (const { rule, globs } of policy.patterns) {
    if (!matchNames(globs, tool)) continue;
    while (e < exact.length && (exact[e] as CompiledRule).order < rule.order) yield exact[e++] as CompiledRule;
    yield rule;
  }
  while (e < exact.length) yield exact[e++] as CompiledRule;
}
