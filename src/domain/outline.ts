/**
 * Selects the part of a JSON value that a person sees first: a limited number of lines, with long members collapsed.
 * Each collapsed member displays its number of hidden lines. Every view that displays a request to people uses this
 * module, including the console.
 */
import { escapePointerToken } from "./json-pointer.ts";
import { clipText } from "./text.ts";
import { renderMarkedText } from "./visible-text.ts";

export type Outline =
  | { kind: "value"; text: string }
  /** `quoted`: whether the string could be mistaken for another type. `more`: number of hidden lines. */
  | { kind: "text"; text: string; quoted: boolean; more: number }
  | { kind: "empty"; list: boolean }
  /** A value that is nested too deeply for a line per member, as JSON. */
  | { kind: "json"; text: string; more: number }
  /** `more`: number of hidden lines, which belong to members that are not in `members`. */
  | { kind: "members"; list: boolean; count: number; members: OutlineMember[]; more: number };

interface OutlineMember {
  name: string;
  /** JSON pointer from the root. */
  pointer: string;
  value: Outline;
}

interface OutlineOptions {
  /** Maximum number of lines of the whole value. If this and `each` are Infinity, nothing is collapsed. */
  lines?: number;
  /** Maximum number of lines for each member. */
  each?: number;
  /** JSON pointers of the members to display first at their level, in this order. */
  first?: readonly string[];
  /** Maps the JSON pointer of a member to the number of its lines that a reader has expanded. */
  unfolded?: ReadonlyMap<string, number>;
  /** Pointer of the root. */
  root?: string;
}

/** Characters in a line. A longer string without line feeds counts as several lines. */
export const LINE_LENGTH = 100;
/** Maximum number of lines of a value, even if a reader expands it fully. */
export const MAX_LINES = 1000;
/** Maximum depth that is rendered with a line per member. A phone screen has no room for more levels. */
const MAX_DEPTH = 6;
const MAX_NAME = 80;

/**
 * Returns the part of a value that a person sees first, with long members collapsed.
 * @example
 * outline({ to: "ada@example.com", text: longText }, { lines: 40, first: ["/to"] });
 */
export function outline(
  value: unknown,
  { lines = 40, each = 6, first = [], unfolded = new Map(), root = "" }: OutlineOptions = {},
): Outline {
  const counted = new Map<object, number>();

  /** Returns the number of lines of the fully expanded value. */
  function linesOf(node: unknown): number {
    if (typeof node === "string") return textLines(node);
    if (node === null || typeof node !== "object") return 1;
    let count = counted.get(node);
    if (count === undefined) {
      count = 1;
      for (const member of Object.values(node)) count += linesOf(member);
      counted.set(node, count);
    }
    return count;
  }

  const unfoldedIn = (pointer: string): number => {
    let sum = 0;
    for (const [at, count] of unfolded) if (at === pointer || at.startsWith(`${pointer}/`)) sum += count;
    return sum;
  };
  const rank = (pointer: string): number => {
    const at = first.findIndex((other) => other === pointer || other.startsWith(`${pointer}/`));
    return at < 0 ? first.length : at;
  };

  function draw(node: unknown, pointer: string, depth: number, room: number): Outline {
    if (typeof node === "string") return { kind: "text", quoted: isAmbiguous(node), ...foldText(node, room) };
    if (node === null || typeof node !== "object") return { kind: "value", text: String(node) };
    const list = Array.isArray(node);
    const names = Object.keys(node);
    if (names.length === 0) return { kind: "empty", list };
    if (depth >= MAX_DEPTH) return { kind: "json", ...foldText(JSON.stringify(node, null, 2), room) };
    const all = names.map((name) => ({ name, pointer: `${pointer}/${escapePointerToken(name)}` }));
    if (first.length > 0 && !list) all.sort((a, b) => rank(a.pointer) - rank(b.pointer));
    const valueOf = (name: string): unknown => (node as Record<string, unknown>)[name];
    const drawn = all.slice(0, room);
    // First give each member one line. Then give short members all their lines before long members get more.
    const extras = new Map<string, number>();
    let spare = room - drawn.length;
    const requestedLines = drawn.map(({ name, pointer: at }) => ({
      name,
      all: linesOf(valueOf(name)),
      most: each + unfoldedIn(at),
    }));
    for (const { name, all: lines, most } of requestedLines.sort((a, b) => a.all - b.all)) {
      // A button that hides a single line takes as much room as the line.
      const extra = Math.min(spare, (lines <= most + 1 ? lines : most) - 1);
      extras.set(name, extra);
      spare -= extra;
    }
    const members = drawn.map(({ name, pointer: at }): OutlineMember => {
      const member = valueOf(name);
      const extra = extras.get(name) ?? 0;
      // The first line of a list or object is the line with its name.
      const inside = isContainer(member) ? extra : extra + 1;
      return {
        name: list ? `${Number(name) + 1}.` : each === Infinity ? name : clipName(name),
        pointer: at,
        value: draw(member, at, depth + 1, inside),
      };
    });
    const more = all.slice(room).reduce((sum, { name }) => sum + linesOf(valueOf(name)), 0);
    return { kind: "members", list, count: all.length, members, more };
  }

  return draw(value, root, 0, Math.max(lines, Math.min(MAX_LINES, lines + unfoldedIn(root))));
}

/** Returns the outline as lines of text. Renders hidden and misleading characters as visible escapes. */
export function outlineLines(value: unknown, options: OutlineOptions = {}): string[] {
  const lines: string[] = [];
  const write = (node: Outline, indent: string, label: string): void => {
    const opening = `${indent}${label}`;
    const inner = label === "" ? indent : `${indent}  `;
    if (node.kind === "value") lines.push(`${opening}${node.text}`);
    else if (node.kind === "empty") lines.push(`${opening}${node.list ? "[]" : "{}"}`);
    else if (node.kind === "members") {
      if (label !== "") lines.push(`${opening}${formatMemberCount(node)}`);
      for (const { name, value: member } of node.members)
        write(member, inner, node.list ? `${name} ` : `${renderMarkedText(name)}: `);
      if (node.more > 0) lines.push(`${inner}${formatHiddenLines(node.more)}`);
    } else {
      const wrapped = node.text.split("\n").flatMap((line) => wrap(renderMarkedText(line)));
      const quote = node.kind === "text" && node.quoted ? '"' : "";
      if (wrapped.length === 1 && node.more === 0) lines.push(`${opening}${quote}${wrapped[0] as string}${quote}`);
      else {
        // The bar distinguishes the lines of a string from members.
        if (label !== "") lines.push(opening.trimEnd());
        lines.push(...wrapped.map((line) => `${inner}| ${line}`));
        if (node.more > 0) lines.push(`${inner}${formatHiddenLines(node.more)}`);
      }
    }
  };
  write(outline(value, options), "", "");
  return lines;
}

function wrap(line: string): string[] {
  return line.match(new RegExp(`[^]{1,${LINE_LENGTH}}`, "gu")) ?? [""];
}

/** Matches a line that stands for hidden lines. */
export const HIDDEN_LINES_PATTERN = /^ *… [\d,]+ more lines?$/;
/**
 * Returns the line that stands for hidden lines.
 * @example
 * formatHiddenLines(2); // "… 2 more lines"
 */
export const formatHiddenLines = (count: number): string =>
  `… ${count.toLocaleString("en")} more ${count === 1 ? "line" : "lines"}`;

/**
 * Formats the size of a list or object, such as "2 items" or "1 member", which is displayed even if the value is
 * collapsed.
 * @example
 * formatMemberCount({ list: true, count: 2 }); // "2 items"
 */
export function formatMemberCount({ list, count }: { list: boolean; count: number }): string {
  return `${count.toLocaleString("en")} ${list ? "item" : "member"}${count === 1 ? "" : "s"}`;
}

const isContainer = (value: unknown): boolean => typeof value === "object" && value !== null;

/** Returns true if a string could be mistaken for another type or for an empty value. */
function isAmbiguous(text: string): boolean {
  return (
    text === "" ||
    text !== text.trim() ||
    /^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|[[{"].*)$/s.test(text)
  );
}

function textLines(text: string): number {
  let lines = 0;
  let start = 0;
  for (;;) {
    const end = text.indexOf("\n", start);
    lines += Math.max(1, Math.ceil(((end < 0 ? text.length : end) - start) / LINE_LENGTH));
    if (end < 0) return lines;
    start = end + 1;
  }
}

/** Returns the first `room` lines of a string. A line longer than LINE_LENGTH counts as several. */
function foldText(text: string, room: number): { text: string; more: number } {
  const all = textLines(text);
  if (all <= room) return { text, more: 0 };
  let end = 0;
  for (let left = room; left > 0;) {
    const feed = text.indexOf("\n", end);
    const stop = feed < 0 ? text.length : feed;
    const takes = Math.max(1, Math.ceil((stop - end) / LINE_LENGTH));
    if (takes > left) {
      end += left * LINE_LENGTH;
      // Do not split a surrogate pair.
      if (/[\ud800-\udbff]/.test(text[end - 1] ?? "")) end -= 1;
      break;
    }
    left -= takes;
    end = left > 0 ? stop + 1 : stop;
  }
  return { text: text.slice(0, end), more: all - room };
}

function clipName(name: string): string {
  return name.length <= MAX_NAME
    ? name
    : `${clipText(name, MAX_NAME)} (${name.length.toLocaleString("en")} characters)`;
}
