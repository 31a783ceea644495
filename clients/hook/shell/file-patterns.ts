/** Patterns for file names. */
import type { ProjectFiles } from "./tasks/task-body.ts";

const MAX_FILES = 2_000;
const MAX_MATCHES = 128;

/** Returns a regular expression for a pattern; null for syntax that programs interpret differently. */
export function patternExpression(pattern: string): RegExp | null {
  if (!/^[\p{L}\p{N}\p{M} ._/@+,{}*?-]+$/u.test(pattern)) return null;
  const source = pattern.replace(/\*\*\/|\*+|[^*]/g, (found) => {
    if (found === "**/") return "(?:.*/)?";
    if (found.startsWith("**")) return ".*";
    return { "*": "[^/]*", "?": "[^/]", "{": "(?:", "}": ")", ",": "|", ".": "[.]", "+": "[+]" }[found] ?? found;
  });
  try {
    return new RegExp(`^${source}$`, "u");
  } catch {
    return null;
  }
}

/**
 * Returns the files that a pattern of `*` and `?` matches in any shell: hidden files count, and `**` matches any number of
 * folders. Null if the result is unknown, or if a name would be read as an option.
 */
export function matchFiles(pattern: string, folder: string, project: ProjectFiles): string[] | null {
  if (!/^(?!\/)[\w./*?@-]+$/.test(pattern) || /(^|\/)\.\.(\/|$)/.test(pattern)) return null;
  const base = pattern.slice(0, pattern.search(/[*?]/)).replace(/[^/]*$/, "");
  const expression = patternExpression(pattern.replace(/^\.\//, ""));
  const isDeep = pattern.includes("**");
  const depth = pattern.slice(base.length).split("/").length;
  const matches: string[] = [];
  let visited = 0;
  const visit = (path: string, level: number): boolean => {
    const names = project.list(`${folder}/${path}`);
    if (names === null) return level > 0;
    for (const name of names) {
      if (++visited > MAX_FILES || matches.length > MAX_MATCHES) return false;
      const entry = path + name;
      if (expression?.test(entry.replace(/^\.\//, "")) === true) matches.push(entry);
      if ((isDeep || level + 1 < depth) && !visit(`${entry}/`, level + 1)) return false;
    }
    return true;
  };
  if (expression === null || !visit(base, 0) || matches.some((name) => name.startsWith("-"))) return null;
  return matches.map((name) => `${folder}/${name}`);
}
