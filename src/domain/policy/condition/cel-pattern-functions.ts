/** The functions `regex.extract`, `regex.extractAll` and `regex.replace` of the CEL extensions of cel-go. */
import { celFunc, CelScalar, listType } from "@bufbuild/cel";
import { toCelList } from "./cel-lists.ts";
import { chargeSteps } from "./cel-meter.ts";
import { OPTIONAL_TEXT } from "./cel-optional.ts";
import { compilePattern, matchesPattern } from "./cel-patterns.ts";
import { findMatch, type PatternMatch } from "./cel-pattern-search.ts";
import { CelOptional, OPTIONAL_NONE } from "./cel-values.ts";

const { INT, STRING } = CelScalar;

/** Names of the functions whose second argument is a pattern. */
export const PATTERN_FUNCTION_NAMES: readonly string[] = ["regex.extract", "regex.extractAll", "regex.replace"];

/** Yields the matches from left to right, at most `most`. They do not overlap. Charges steps to the current meter. */
export function* matchesOf(text: string, source: string, most = Infinity): Generator<PatternMatch> {
  const { regex } = compilePattern(source);
  let [from, end] = [0, -1];
  // Most strings have no match, and this test is faster than the search.
  if (!matchesPattern.call(text, source)) return;
  for (let count = 0; count < most && from <= text.length;) {
    const match = findMatch(regex, text, from);
    if (match === null) return;
    const [start, stop] = match as [number, number];
    const isEmpty = start === stop;
    // An empty match right after another match does not count.
    if (!isEmpty || start !== end) {
      count++;
      yield match;
    }
    end = stop;
    from = isEmpty ? stop + ((text.codePointAt(stop) ?? 0) > 0xffff ? 2 : 1) : stop;
  }
}

function groupOf(text: string, match: PatternMatch, group: number): string {
  const [start, end] = [match[2 * group] ?? -1, match[2 * group + 1] ?? -1];
  chargeSteps((end - start) >> 6);
  return start < 0 ? "" : text.slice(start, end);
}

/** Returns the result of `regex.extract` for a match: the only group, or the whole match. */
function extractMatch(text: string, source: string, match: PatternMatch): string {
  const groups = compilePattern(source).regex.groupCount();
  if (groups > 1) throw new Error("the pattern has several groups");
  return groupOf(text, match, groups);
}

function extract(text: string, source: string): CelOptional {
  for (const match of matchesOf(text, source, 1)) {
    const found = extractMatch(text, source, match);
    // A group that is empty or did not match has no value.
    return match.length > 2 && found === "" ? OPTIONAL_NONE : new CelOptional(found);
  }
  return OPTIONAL_NONE;
}

function extractAll(text: string, source: string): unknown {
  const found: string[] = [];
  for (const match of matchesOf(text, source)) {
    const part = extractMatch(text, source, match);
    if (match.length === 2 || part !== "") found.push(part);
  }
  return toCelList(found);
}

/** Returns the literal parts and group numbers of a replacement such as `\\2 \\1`. Throws if it is invalid. */
export function parseReplacement(by: string, groups: number): (string | number)[] {
  return [...by.matchAll(/\\(.?)|[^\\]+/gsu)].map(([part, escaped]) => {
    if (escaped === undefined) return part;
    if (escaped === "\\") return "\\";
    if (!/^[0-9]$/.test(escaped) || Number(escaped) > groups)
      throw new Error(`a backslash must be followed by a backslash or by the number of a group, at most ${groups}`);
    return Number(escaped);
  });
}

function replace(text: string, source: string, by: string, count = -1n): string {
  chargeSteps(1 + (by.length >> 3));
  const parts = parseReplacement(by, compilePattern(source).regex.groupCount());
  const chunks: string[] = [];
  let copied = 0;
  for (const match of matchesOf(text, source, count < 0n ? Infinity : Number(count))) {
    const [start, end] = match as [number, number];
    chunks.push(text.slice(copied, start));
    for (const part of parts) {
      const chunk = typeof part === "string" ? part : groupOf(text, match, part);
      chargeSteps(1 + (chunk.length >> 5));
      chunks.push(chunk);
    }
    copied = end;
  }
  chargeSteps(text.length >> 5);
  return [...chunks, text.slice(copied)].join("");
}

export const PATTERN_FUNCTIONS: readonly unknown[] = [
  celFunc("regex.extract", [STRING, STRING], OPTIONAL_TEXT, extract as never),
  celFunc("regex.extractAll", [STRING, STRING], listType(STRING), extractAll as never),
  celFunc("regex.replace", [STRING, STRING, STRING], STRING, replace),
  celFunc("regex.replace", [STRING, STRING, STRING, INT], STRING, replace),
];
