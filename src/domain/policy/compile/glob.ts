/** Globs in policies: `*` matches any characters, including none and dots; `?` matches one code point. */

import { findNameFault } from "../../names.ts";
import { clipText, revealHidden } from "../../text.ts";

/** Returns the reason why the pattern cannot match any valid name; null if it can match one. */
export function findGlobFault(pattern: string): string | null {
  const fault = findNameFault(pattern);
  return fault === null ? null : `"${clipText(revealHidden(pattern), 80)}" ${fault}, so that no name can match it`;
}

export function isGlob(pattern: string): boolean {
  return pattern.includes("*") || pattern.includes("?");
}

/**
 * Returns true if the glob matches the string, compared by code points. To ignore case, fold both arguments first. At
 * most O(pattern × text) steps, because only the last star is widened.
 */
export function matchGlob(pattern: string, text: string): boolean {
  return match(codePoints(pattern), codePoints(text));
}

const SURROGATE = /[\ud800-\udfff]/;

function codePoints(text: string): ArrayLike<string> {
  return SURROGATE.test(text) ? Array.from(text) : text;
}

/** @param many a character of the text that `?` does not match */
function match(pattern: ArrayLike<string>, text: ArrayLike<string>, many?: string): boolean {
  let p = 0;
  let t = 0;
  let star = -1;
  let resume = 0;
  while (t < text.length) {
    const c = pattern[p];
    if (c === "*") {
      star = p++;
      resume = t;
    } else if (c !== undefined && ((c === "?" && text[t] !== many) || c === text[t])) {
      p++;
      t++;
    } else if (star >= 0) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (pattern[p] === "*") p++;
  return p === pattern.length;
}

export function matchesAny(patterns: readonly string[], text: string): boolean {
  const first = text.charCodeAt(0);
  for (const pattern of patterns) {
    // Fast path, because most patterns differ in the first character. `*` is 0x2a, `?` is 0x3f.
    const c = pattern.charCodeAt(0);
    if (c !== first && c !== 0x2a && c !== 0x3f && pattern !== "") continue;
    if (isGlob(pattern) ? matchGlob(pattern, text) : pattern === text) return true;
  }
  return false;
}

/** Returns true if some text matches both globs. At most O(a × b) steps. */
export function doGlobsOverlap(a: string, b: string): boolean {
  const [left, right] = [Array.from(a), Array.from(b)];
  /** Whether the rests of both globs after `i` and `j` code points overlap, for each `j`. Computed from the ends. */
  let next: boolean[] = [];
  for (let i = left.length; i >= 0; i--) {
    const row: boolean[] = [];
    for (let j = right.length; j >= 0; j--) {
      const [x, y] = [left[i], right[j]];
      if (x === undefined && y === undefined) row[j] = true;
      else if (x === "*") row[j] = (next[j] ?? false) || (y !== undefined && (row[j + 1] ?? false));
      else if (y === "*") row[j] = (row[j + 1] ?? false) || (x !== undefined && (next[j] ?? false));
      else row[j] = x !== undefined && y !== undefined && (x === y || x === "?" || y === "?") && (next[j + 1] ?? false);
    }
    next = row;
  }
  return next[0] === true;
}

/** Returns true if every text that matches `inner` matches `outer`. May return false for globs with several wildcards. */
export function doesGlobInclude(outer: string, inner: string): boolean {
  // A wildcard of `inner` stands for a character that only a wildcard of `outer` can match. `*` stands for any number
  // of them.
  const wildcard = (character: string): string => (character === "*" ? "\0" : character === "?" ? "\u0001" : character);
  return match(codePoints(outer), Array.from(inner, wildcard), "\0");
}
