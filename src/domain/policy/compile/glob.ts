/** Globs of policies: `*` stands for any characters, also none and also dots; `?` for one code point. */

import { findNameFault } from "../../names.ts";
import { clipText, revealHidden } from "../../text.ts";

/** Why no name can be meant by a pattern; null when one can. */
export function findGlobFault(pattern: string): string | null {
  const fault = findNameFault(pattern);
  return fault === null ? null : `"${clipText(revealHidden(pattern), 80)}" ${fault}, so that no name can match it`;
}

export function isGlob(pattern: string): boolean {
  return pattern.includes("*") || pattern.includes("?");
}

/**
 * Compares code points exactly; to ignore case, fold both arguments first. At worst O(pattern × text): only the last
 * star is ever widened, so there is no backtracking into earlier ones.
 */
export function matchGlob(pattern: string, text: string): boolean {
  return match(codePoints(pattern), codePoints(text));
}

const SURROGATE = /[\ud800-\udfff]/;

function codePoints(text: string): ArrayLike<string> {
  return SURROGATE.test(text) ? Array.from(text) : text;
}

function match(pattern: ArrayLike<string>, text: ArrayLike<string>): boolean {
  let p = 0;
  let t = 0;
  let star = -1;
  let resume = 0;
  while (t < text.length) {
    const c = pattern[p];
    if (c === "*") {
      star = p++;
      resume = t;
    } else if (c !== undefined && (c === "?" || c === text[t])) {
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
    // Most begin otherwise, and are no more looked at: `*` is 0x2a, `?` is 0x3f.
    const c = pattern.charCodeAt(0);
    if (c !== first && c !== 0x2a && c !== 0x3f && pattern !== "") continue;
    if (isGlob(pattern) ? matchGlob(pattern, text) : pattern === text) return true;
  }
  return false;
}
