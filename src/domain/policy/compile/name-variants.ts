/**
 * Finds names of tools and operations that extend a name in the policies, such as `stripe/` or `stripe:refund` for
 * `stripe`. A rule for `stripe` does not match them, but the program that runs the action might read them as `stripe`.
 */
import { foldName } from "../../names.ts";
import type { PolicyDocument } from "../policy-types.ts";
import { isGlob, matchesAny } from "./glob.ts";

/** The tools or operations that policies name, case-folded. */
interface PolicyNames {
  readonly names: ReadonlySet<string>;
  /** Globs, case-folded. */
  readonly globs: readonly string[];
}

export interface NamedInPolicies {
  readonly tool: PolicyNames;
  readonly operation: PolicyNames;
}

/** Returns the tools and operations that the policies name in rules, limits and `applies_to`. */
export function findNamed(definitions: readonly PolicyDocument[]): NamedInPolicies {
  const parts = definitions.flatMap(({ rules, limits = [] }) => [...rules, ...limits]);
  return {
    tool: toNames([...definitions.map(({ applies_to }) => applies_to?.tools), ...parts.map(({ tool }) => tool)]),
    operation: toNames(parts.map(({ operation }) => operation)),
  };
}

function toNames(named: readonly (string | readonly string[] | undefined)[]): PolicyNames {
  const patterns = named.flatMap((names) => names ?? []).map(foldName);
  return {
    names: new Set(patterns.filter((pattern) => !isGlob(pattern))),
    globs: [...new Set(patterns.filter(isGlob))],
  };
}

/** Separators at which programs divide a name. A dot is not one: `billing.*` is how policies name a family of tools. */
const SEPARATOR = /[^\p{L}\p{M}\p{N}_.-]/u;

/**
 * Returns the policy's name that an unknown name extends, such as `stripe` for `stripe/refunds`; null if there is none.
 */
export function findExtendedName({ names, globs }: PolicyNames, name: string): string | null {
  const folded = foldName(name);
  if (names.has(folded)) return null;
  const found = findReadings(folded).find((each) => names.has(each)) ?? null;
  if (found === null) return null;
  // The author of `stripe/*` knows that names can extend `stripe`. The author of `s*` might not.
  const naming = globs.filter((glob) => isExtensionOf(found, glob.slice(0, glob.search(/[*?]/))));
  return matchesAny(naming, folded) ? null : found;
}

/** Returns true if a name begins with a name of the policies and a separator, such as `stripe/` for `stripe`. */
function isExtensionOf(name: string, text: string): boolean {
  return text !== name && findReadings(text).includes(name);
}

/** Returns a name, case-folded, and the names as which a program might read it. */
export function listNameReadings(name: string): string[] {
  const folded = foldName(name);
  return [folded, ...findReadings(folded)];
}

/**
 * Returns the names that a program might derive from a name: its first segment, also after percent decoding and
 * resolution of `..`.
 */
function findReadings(name: string): string[] {
  return [name, resolveDots(decodePercent(name))].flatMap((text) => {
    const first = text.split(SEPARATOR).find((part) => /[^.]/.test(part)) ?? "";
    return [first, first.replaceAll(/^\.+|\.+$/g, "")];
  });
}

/** Decodes percent-encoded ASCII characters, repeatedly, because a program behind another decodes again. */
function decodePercent(name: string): string {
  const decoded = name.replaceAll(/%([0-7][0-9a-f])/gi, (_, hex: string) => String.fromCodePoint(parseInt(hex, 16)));
  return decoded === name ? foldName(name) : decodePercent(decoded);
}

/** Removes each part that a `..` after it cancels. */
function resolveDots(name: string): string {
  const parts: string[] = [];
  for (const part of name.split(/[\\/]/)) {
    if (part === "..") parts.pop();
    else if (part !== "" && part !== ".") parts.push(part);
  }
  return parts.join("/");
}
