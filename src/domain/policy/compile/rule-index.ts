/** Finding what could speak of a tool, without a look at the rest. */
import { foldName } from "../../names.ts";
import type { CompiledPolicy, CompiledPolicySet, CompiledRule } from "./compile.ts";
import { matchNames } from "./name-patterns.ts";

/** Policies that could say something about a tool, in the order of the set. */
export function policiesForTool({ byTool, anyTool }: CompiledPolicySet, tool: string): readonly CompiledPolicy[] {
  const named = byTool.get(foldName(tool));
  if (named === undefined) return anyTool;
  return anyTool.length === 0 ? named : [...named, ...anyTool].sort((a, b) => a.order - b.order);
}

/**
 * Rules of one policy that could match this tool, in the order they are written. Costs nothing for rules about other tools.
 *
 * @param tool as the policy reads names
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
