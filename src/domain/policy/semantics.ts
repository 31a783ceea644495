/**
 * What a policy set means, by its format. A decision of an older set must come out the same when it is made again, so
 * what that format meant stays as it was. Sets are built in the newest format; the others are only read.
 */
import { foldName } from "../names.ts";
import { CEL_1, CEL_2, type CelEdition } from "./cel.ts";
import { matchesAny } from "./glob.ts";

export interface Semantics {
  /** Names match without regard to case, unless a policy says `case_sensitive`. */
  readonly foldsNames: boolean;
  /** `?` of a glob stands for a UTF-16 code unit instead of a code point. */
  readonly globUnits: boolean;
  readonly cel: CelEdition;
  /** An action that a limit asks about is asked about only where a rule has an answer, too. */
  readonly limitsNeedRules: boolean;
  /** Limits are evaluated before the rules, so that it can be done once, before what was used is read. */
  readonly limitsFirst: boolean;
}

const FORMATS = {
  "assent-policy-set/1": { foldsNames: false, globUnits: true, cel: CEL_1, limitsNeedRules: false, limitsFirst: false },
  "assent-policy-set/2": { foldsNames: true, globUnits: false, cel: CEL_2, limitsNeedRules: true, limitsFirst: true },
} as const satisfies Record<string, Semantics>;

export type PolicySetFormat = keyof typeof FORMATS;

export const NEWEST_FORMAT: PolicySetFormat = "assent-policy-set/2";

/** Throws for a format that a later version wrote: what it means is not known here. */
export function semanticsOf(format: string): Semantics {
  const semantics = Object.hasOwn(FORMATS, format) ? FORMATS[format as PolicySetFormat] : undefined;
  if (semantics === undefined)
    throw new Error(
      `the policy set has the format "${format}", which this version of Assent does not know; upgrade it`,
    );
  return semantics;
}

/** How one policy compares names. */
export interface NameReading {
  readonly fold: boolean;
  readonly units: boolean;
}

/** Patterns as `matchNames` takes them. */
export function readPatterns(patterns: readonly string[], { fold }: NameReading): readonly string[] {
  return fold ? patterns.map(foldName) : patterns;
}

/** @param patterns of `readPatterns`; null matches everything @param name folded where the reading folds */
export function matchNames(patterns: readonly string[] | null, name: string, { units }: NameReading): boolean {
  return patterns === null || matchesAny(patterns, name, units);
}

/** Globs outside policies: always without regard to case. */
export function matchesAnyName(patterns: readonly string[], name: string): boolean {
  return matchesAny(patterns.map(foldName), foldName(name));
}
