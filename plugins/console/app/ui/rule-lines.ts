/** Finds the lines of a rule in the text of its policy, so that a link can point at them. Pure. */

export interface LineRange {
  /** Index of the first line. */
  from: number;
  /** Index after the last line. */
  to: number;
}

/** Returns the lines of the rule's list item; null if the text does not contain a rule of this name. */
export function findRuleLines(text: string, rule: string): LineRange | null {
  const lines = text.split("\n");
  for (const [from, line] of lines.entries()) {
    const item = /^(\s*)- /.exec(line);
    if (item === null) continue;
    const indent = item[1]?.length ?? 0;
    const after = lines.findIndex((next, i) => i > from && next.trim() !== "" && indentOf(next) <= indent);
    let to = after < 0 ? lines.length : after;
    while (to > from + 1 && lines[to - 1]?.trim() === "") to -= 1;
    if (lines.slice(from, to).some((one) => nameIn(one) === rule)) return { from, to };
  }
  return null;
}

const indentOf = (line: string): number => line.length - line.trimStart().length;

/** Returns the value of `name:` in a line of YAML, in block or flow style; null if the line has none. */
function nameIn(line: string): string | null {
  const match = /^\s*(?:- )?(?:\{.*?\b|)"?name"?:\s*("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^,}#]+)/.exec(line);
  const value = match?.[1]?.trim();
  if (value === undefined) return null;
  if (value.startsWith("'")) return value.slice(1, -1).replaceAll("''", "'");
  if (!value.startsWith('"')) return value;
  try {
    return JSON.parse(value) as string;
  } catch {
    return null;
  }
}
