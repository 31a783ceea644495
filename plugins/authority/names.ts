/** Compares names that can be globs. `contains` and `overlaps` compare case-folded names; the others ignore case. */
import { foldName, isGlob, matchGlob } from "../../src/core.ts";

/** Returns true if the pattern matches every name that `glob` matches. May return false if the pattern contains `?`. */
export function contains(pattern: string, glob: string): boolean {
  if (pattern === glob) return true;
  // A `?` matches exactly one character, but it would match a `*` in the other glob, which stands for any number.
  return (!isGlob(glob) || !pattern.includes("?")) && matchGlob(pattern, glob);
}

/** Returns false if no name matches both globs. May return true for globs with nothing in common but their ends. */
export function overlaps(a: string, b: string): boolean {
  if (!isGlob(a)) return isGlob(b) ? matchGlob(b, a) : a === b;
  if (!isGlob(b)) return matchGlob(a, b);
  const [startA, startB, endA, endB] = [literalStart(a), literalStart(b), literalEnd(a), literalEnd(b)];
  return (startA.startsWith(startB) || startB.startsWith(startA)) && (endA.endsWith(endB) || endB.endsWith(endA));
}

const literalStart = (glob: string): string => glob.slice(0, glob.search(/[*?]/));
const literalEnd = (glob: string): string => glob.slice(Math.max(glob.lastIndexOf("*"), glob.lastIndexOf("?")) + 1);

/** How patterns relate to a name that can be a glob: they match all, some or none of the names that it matches. */
export type Relation = "all" | "some" | "none";

/** @param patterns null matches every name */
export function relate(patterns: readonly string[] | null, glob: string): Relation {
  const name = foldName(glob);
  const folded = patterns?.map(foldName);
  if (folded === undefined || folded.some((each) => contains(each, name))) return "all";
  return folded.some((each) => overlaps(each, name)) ? "some" : "none";
}

/** Returns how several kinds of patterns that must all match relate to the names. */
export const combineRelations = (relations: readonly Relation[]): Relation =>
  relations.includes("none") ? "none" : relations.includes("some") ? "some" : "all";

/** Returns globs that match at least the names that match both lists. */
export function intersectNames(names: readonly string[], within: readonly string[] | null): readonly string[] {
  if (within === null) return names;
  const others = within.map((text) => ({ text, folded: foldName(text) }));
  return names.flatMap((name) => {
    const folded = foldName(name);
    if (others.some((other) => contains(other.folded, folded))) return [name];
    const narrower = others.filter((other) => contains(folded, other.folded));
    const isCovered = others.every((other) => narrower.includes(other) || !overlaps(folded, other.folded));
    return [...narrower.map(({ text }) => text), ...(isCovered ? [] : [name])];
  });
}
