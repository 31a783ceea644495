/**
 * Finds tool names that extend the name of a tool in the policies, such as `stripe/` or `stripe:refund` for `stripe`. A
 * rule for `stripe` does not match them, but the program that runs the tool might read them as `stripe`.
 */
import { foldName } from "../../names.ts";
import type { PolicyDocument } from "../policy-types.ts";
import { isGlob, matchesAny } from "./glob.ts";

/** The tools that policies name, case-folded. */
export interface NamedTools {
  readonly names: ReadonlySet<string>;
  /** Globs, except those that match every name. */
  readonly globs: readonly string[];
}

/** Returns the tools that the policies name in rules, limits and `applies_to`. */
export function findNamedTools(definitions: readonly PolicyDocument[]): NamedTools {
  const patterns = definitions.flatMap(({ applies_to, rules, limits = [] }) =>
    [applies_to?.tools, ...[...rules, ...limits].map(({ tool }) => tool)].flatMap((tool) => tool ?? []).map(foldName),
  );
  return {
    names: new Set(patterns.filter((pattern) => !isGlob(pattern))),
    globs: [...new Set(patterns.filter((pattern) => isGlob(pattern) && /[^*?]/.test(pattern)))],
  };
}

/** Separators at which programs divide a name. A dot is not one: `billing.*` is how policies name a family of tools. */
const SEPARATOR = /[^\p{L}\p{M}\p{N}_.-]/u;

/** Returns the named tool that a tool which no policy names extends; null if there is none. */
export function findExtendedTool({ names, globs }: NamedTools, tool: string): string | null {
  const folded = foldName(tool);
  if (names.has(folded)) return null;
  const first = folded.split(SEPARATOR).find((part) => /[^.]/.test(part)) ?? "";
  const found = [first, first.replaceAll(/^\.+|\.+$/g, "")].find((name) => names.has(name)) ?? null;
  return found === null || matchesAny(globs, folded) ? null : found;
}
