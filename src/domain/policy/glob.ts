/** Globs of policies: `*` stands for any characters, also none and also dots; `?` for one. Case matters. */

export function isGlob(pattern: string): boolean {
  return pattern.includes("*") || pattern.includes("?");
}

/** O(pattern × text) at worst, without backtracking into earlier stars: only the last one is ever widened. */
export function matchGlob(pattern: string, text: string): boolean {
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
  return patterns.some((pattern) => (isGlob(pattern) ? matchGlob(pattern, text) : pattern === text));
}
