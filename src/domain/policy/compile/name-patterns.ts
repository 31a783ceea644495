/** Matches names of tools, operations and agents against patterns. */
import { foldName } from "../../names.ts";
import { matchesAny } from "./glob.ts";

/** Prepares patterns for `matchNames`: case-folds them unless the policy is case-sensitive. */
export function normalizePatterns(patterns: readonly string[], caseSensitive: boolean): readonly string[] {
  return caseSensitive ? patterns : patterns.map(foldName);
}

/**
 * Returns true if a pattern matches the name.
 * @param patterns the result of `normalizePatterns`; null matches every name
 * @param name the name, case-folded unless the policy is case-sensitive
 */
export function matchNames(patterns: readonly string[] | null, name: string): boolean {
  return patterns === null || matchesAny(patterns, name);
}

/** Returns true if a glob matches the name, regardless of case. For globs outside policies, such as in stops. */
export function matchesAnyName(patterns: readonly string[], name: string): boolean {
  return matchesAny(patterns.map(foldName), foldName(name));
}
