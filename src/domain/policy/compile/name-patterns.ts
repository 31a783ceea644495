/** How policies compare names of tools, operations and agents. */
import { foldName } from "../../names.ts";
import { matchesAny } from "./glob.ts";

/** Folds patterns unless the policy is case-sensitive, as `matchNames` expects them. */
export function foldPatterns(patterns: readonly string[], caseSensitive: boolean): readonly string[] {
  return caseSensitive ? patterns : patterns.map(foldName);
}

/** @param patterns from `foldPatterns`; null matches every name @param name folded unless the policy is case-sensitive */
export function matchNames(patterns: readonly string[] | null, name: string): boolean {
  return patterns === null || matchesAny(patterns, name);
}

/** Matches globs outside policies, such as those of stops. Always ignores case. */
export function matchesAnyName(patterns: readonly string[], name: string): boolean {
  return matchesAny(patterns.map(foldName), foldName(name));
}
