/** Matches names of tools, operations and agents against patterns. */
import { foldName } from "../../names.ts";
import { matchesAny } from "./glob.ts";

/** Prepares patterns for `matchNames`: folds them unless the policy is case-sensitive. */
export function foldPatterns(patterns: readonly string[], caseSensitive: boolean): readonly string[] {
  return caseSensitive ? patterns : patterns.map(foldName);
}

/**
 * Whether a pattern matches the name.
 * @param patterns from `foldPatterns`; null matches every name
 * @param name folded unless the policy is case-sensitive
 */
export function matchNames(patterns: readonly string[] | null, name: string): boolean {
  return patterns === null || matchesAny(patterns, name);
}

/** Matches globs outside policies, such as in stops. Ignores case. */
export function matchesAnyName(patterns: readonly string[], name: string): boolean {
  return matchesAny(patterns.map(foldName), foldName(name));
}
