/** Changes settings of others in their text: comments, order, indentation and ends of lines stay as they are. */
import { isDeepStrictEqual } from "node:util";

export class SettingsFault extends Error {}

export type Path = readonly (string | number)[];

interface Node {
  start: number;
  /** Behind its last character. */
  end: number;
  value: unknown;
  /** Of an object or a list; null of anything else. */
  children: Child[] | null;
}

interface Child {
  key: string | number;
  /** Where its name begins, or itself. */
  start: number;
  node: Node;
}

const SPACE = /(?:[ \t\r\n]+|\/\/[^\r\n]*|\/\*[^]*?\*\/)*/y;
const STRING = /"(?:[^"\\\r\n]|\\[^\r\n])*"/y;
const SCALAR = /(?:-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false|null)(?![\w.])/y;
const DEEPEST = 200;

/** What stands in some files beside JSON. */
export type Extra = "a byte order mark" | "comments" | "trailing commas";

/** JSON that may have comments, and a comma behind what comes last. @throws SettingsFault */
class Reader {
  readonly extras = new Set<Extra>();
  private at = 0;
  private readonly text: string;
  constructor(text: string) {
    this.text = text;
  }

  whole(): Node {
    if (this.text.startsWith("\uFEFF")) {
      this.extras.add("a byte order mark");
      this.at = 1;
    }
    const node = this.node(0);
    this.skip();
    if (this.at < this.text.length) throw this.fault();
    return node;
  }

  private node(depth: number): Node {
    this.skip();
    const start = this.at;
    const opening = this.text[start];
    if (opening === "{" || opening === "[") return this.container(opening, depth);
    const value = this.parse(this.take(STRING) ?? this.take(SCALAR));
    return { start, end: this.at, value, children: null };
  }

  private container(opening: "{" | "[", depth: number): Node {
    if (depth > DEEPEST) throw this.fault();
    const start = this.at++;
    const closing = opening === "{" ? "}" : "]";
    const children: Child[] = [];
    for (;;) {
      this.skip();
      if (this.text[this.at] === closing) {
        if (children.length > 0) this.extras.add("trailing commas");
        break;
      }
      children.push(this.child(opening, children, depth));
      this.skip();
      if (this.text[this.at] === closing) break;
      if (this.text[this.at++] !== ",") throw this.fault();
    }
    const value =
      opening === "["
        ? children.map(({ node }) => node.value)
        : Object.fromEntries(children.map(({ key, node }) => [key, node.value]));
    return { start, end: ++this.at, value, children };
  }

  private child(opening: "{" | "[", before: readonly Child[], depth: number): Child {
    const start = this.at;
    if (opening === "[") return { key: before.length, start, node: this.node(depth + 1) };
    const key = this.parse(this.take(STRING)) as string;
    this.skip();
    if (this.text[this.at++] !== ":") throw this.fault();
    if (before.some((each) => each.key === key)) throw new SettingsFault(`the file has "${key}" twice in one place`);
    return { key, start, node: this.node(depth + 1) };
  }

  private parse(text: string | null): unknown {
    try {
      return JSON.parse(text ?? "") as unknown;
    } catch {
      throw this.fault();
    }
  }

  private skip(): void {
    if (this.take(SPACE)?.includes("/") === true) this.extras.add("comments");
  }

  private take(what: RegExp): string | null {
    what.lastIndex = this.at;
    const [match] = what.exec(this.text) ?? [];
    if (match === undefined) return null;
    this.at += match.length;
    return match;
  }

  private fault(): SettingsFault {
    const line = this.text.slice(0, this.at).split("\n").length;
    return new SettingsFault(`the file is no JSON (line ${line})`);
  }
}

const read = (text: string): Node => new Reader(text).whole();

/** @throws SettingsFault */
export const valueOf = (text: string): unknown => read(text).value;

/** What is in it that JSON has not. @throws SettingsFault */
export function extrasIn(text: string): Extra[] {
  const reader = new Reader(text);
  reader.whole();
  return [...reader.extras].sort();
}

function nodeAt(root: Node, path: Path): Node | undefined {
  let node: Node | undefined = root;
  for (const key of path) node = node?.children?.find((each) => each.key === key)?.node;
  return node;
}

/** Puts a value last into the list, or the object, at a path, and makes what is missing on the way there. @throws SettingsFault */
export function added(text: string, path: Path, key: string | null, value: unknown): string {
  const root = read(text);
  let [at, name, content] = [path, key, value];
  while (nodeAt(root, at) === undefined) {
    content = name === null ? [content] : { [name]: content };
    name = at.at(-1) as string;
    at = at.slice(0, -1);
  }
  const node = nodeAt(root, at) as Node;
  if (node.children === null || Array.isArray(node.value) !== (name === null))
    throw new SettingsFault(`"${at.join(".")}" is no ${name === null ? "list" : "object"}`);
  const eol = text.includes("\r\n") ? "\r\n" : "\n";
  const unit = /^([ \t]+)\S/m.exec(text)?.[1] ?? "  ";
  const body = JSON.stringify(content, null, unit).replaceAll("\n", eol + unit.repeat(at.length + 1));
  const entry = `${eol}${unit.repeat(at.length + 1)}${name === null ? "" : `${JSON.stringify(name)}: `}${body}`;
  const last = node.children.at(-1);
  return last === undefined
    ? `${text.slice(0, node.end - 1)}${entry}${eol}${unit.repeat(at.length)}${text.slice(node.end - 1)}`
    : `${text.slice(0, last.node.end)},${entry}${text.slice(last.node.end)}`;
}

/** Takes out what stands at a path. @throws SettingsFault */
export function removed(text: string, path: Path): string {
  const root = read(text);
  const { children } = nodeAt(root, path.slice(0, -1)) as Node & { children: Child[] };
  const at = children.findIndex(({ key }) => key === path.at(-1));
  const { start, node } = children[at] as Child;
  const [before, after] = [text.slice(0, start), text.slice(node.end)];
  const [previous, next] = [children[at - 1], children[at + 1]];
  const candidates: string[] = [];
  if (previous !== undefined) {
    const gap = withoutComma(text.slice(previous.node.end, start));
    const head = text.slice(0, previous.node.end);
    candidates.push(head + gap.replace(/[ \t\r\n]+$/, "") + after, head + gap + after);
  } else if (next !== undefined) {
    const gap = withoutComma(text.slice(node.end, next.start));
    candidates.push(before + gap.trimStart() + text.slice(next.start), before + gap + text.slice(next.start));
  } else {
    const rest = withoutComma(after.slice(0, after.search(/[}\]]/))) + after.slice(after.search(/[}\]]/));
    candidates.push(before.replace(/\r?\n[ \t]*$/, "") + rest.replace(/^[ \t]*\r?\n[ \t]*/, ""), before + rest);
  }
  const wanted = without(root.value, path);
  const whole = candidates.find((each) => holds(each, wanted));
  if (whole === undefined) throw new SettingsFault("the hook stands where it cannot be taken out; take it out by hand");
  return whole;
}

/** The first comma outside of comments. */
const withoutComma = (gap: string): string => gap.replace(/^((?:[ \t\r\n]+|\/\/[^\r\n]*|\/\*[^]*?\*\/)*),/, "$1");

function without(value: unknown, [key, ...rest]: Path): unknown {
  if (Array.isArray(value))
    return value.flatMap((each: unknown, i) => (i !== key ? [each] : rest.length === 0 ? [] : [without(each, rest)]));
  return Object.fromEntries(
    Object.entries(value as object).flatMap(([name, each]) =>
      name !== key ? [[name, each]] : rest.length === 0 ? [] : [[name, without(each, rest)]],
    ),
  );
}

function holds(text: string, wanted: unknown): boolean {
  try {
    return isDeepStrictEqual(valueOf(text), wanted);
  } catch {
    return false;
  }
}
