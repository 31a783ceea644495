/**
 * Edits the text of other programs' settings. Preserves comments, order, indentation and line ends. A removal must
 * restore the text byte for byte. jsonc-parser therefore only parses the text, because its edits reformat neighbouring
 * lines.
 */
import { findNodeAtLocation, parseTree, visit, type Node } from "jsonc-parser";
import { isDeepStrictEqual } from "node:util";

export class SettingsError extends Error {}

type JsonPath = readonly (string | number)[];

/** Syntax that a file may contain in addition to JSON. */
export type SyntaxExtension = "a byte order mark" | "comments" | "trailing commas";

const BYTE_ORDER_MARK = "\uFEFF";
const SYNTAX = { allowTrailingComma: true, disallowComments: false };

interface ParsedText {
  root: Node;
  extensions: Set<SyntaxExtension>;
}

/** Parses a document. Offsets include its byte order mark. @throws SettingsError */
function parseText(text: string): ParsedText {
  const extras = new Set<SyntaxExtension>();
  if (text.startsWith(BYTE_ORDER_MARK)) extras.add("a byte order mark");
  // Replace the byte order mark with a space, so that the offsets stay the same.
  const body = text.replace(BYTE_ORDER_MARK, " ");
  try {
    checkSyntax(body, extras);
    const root = parseTree(body, [], SYNTAX);
    if (root !== undefined) return { root, extensions: extras };
  } catch (error) {
    // The parser is recursive, so deep nesting can overflow the stack.
    if (!(error instanceof RangeError)) throw error;
  }
  throw new SettingsError("the file is not JSON");
}

/**
 * Throws at the first syntax error and at a duplicate name, because programs treat duplicates differently.
 * @throws SettingsError
 */
function checkSyntax(text: string, extras: Set<SyntaxExtension>): void {
  const scopes: Set<string>[] = [];
  let afterComma = false;
  const onValue = (): void => void (afterComma = false);
  const onBegin = (): void => {
    scopes.push(new Set());
    afterComma = false;
  };
  const onEnd = (): void => {
    scopes.pop();
    if (afterComma) extras.add("trailing commas");
    afterComma = false;
  };
  visit(
    text,
    {
      onObjectBegin: onBegin,
      onArrayBegin: onBegin,
      onObjectEnd: onEnd,
      onArrayEnd: onEnd,
      onLiteralValue: onValue,
      onObjectProperty(name) {
        const scope = scopes.at(-1);
        if (scope?.has(name) === true) throw new SettingsError(`the file has "${name}" twice in one object`);
        scope?.add(name);
        afterComma = false;
      },
      onSeparator: (character) => void (afterComma = character === ","),
      onComment: () => void extras.add("comments"),
      onError(_code, _offset, _length, line) {
        throw new SettingsError(`the file is not JSON (line ${line + 1})`);
      },
    },
    SYNTAX,
  );
}

/** Converts a node to a value. The library's own conversion creates objects without a prototype. */
function nodeValue({ type, value, children = [] }: Node): unknown {
  if (type === "array") return children.map(nodeValue);
  if (type !== "object") return value as unknown;
  return Object.fromEntries(children.map((property) => [propertyName(property), nodeValue(contentNode(property))]));
}

const propertyName = (property: Node): string => property.children?.[0]?.value as string;
/** Returns the value node of a property node; a list item unchanged. */
const contentNode = (child: Node): Node => (child.type === "property" ? (child.children?.[1] as Node) : child);
const nodeEnd = ({ offset, length }: Node): number => offset + length;

/** @throws SettingsError */
export const parseJsonc = (text: string): unknown => nodeValue(parseText(text).root);

/** Returns the syntax that the text uses in addition to JSON. @throws SettingsError */
export const syntaxExtensionsIn = (text: string): SyntaxExtension[] => [...parseText(text).extensions].sort();

/** Appends a value to the list or object at a path. Creates missing parents. @throws SettingsError */
export function insertValue(text: string, path: JsonPath, key: string | null, value: unknown): string {
  const { root } = parseText(text);
  let [at, name, content] = [path, key, value];
  while (findNodeAtLocation(root, [...at]) === undefined) {
    content = name === null ? [content] : { [name]: content };
    name = at.at(-1) as string;
    at = at.slice(0, -1);
  }
  const node = findNodeAtLocation(root, [...at]) as Node;
  if (node.type !== (name === null ? "array" : "object"))
    throw new SettingsError(`"${at.join(".")}" is not ${name === null ? "a list" : "an object"}`);
  const eol = text.includes("\r\n") ? "\r\n" : "\n";
  const unit = /^([ \t]+)\S/m.exec(text)?.[1] ?? "  ";
  const body = JSON.stringify(content, null, unit).replaceAll("\n", eol + unit.repeat(at.length + 1));
  const entry = `${eol}${unit.repeat(at.length + 1)}${name === null ? "" : `${JSON.stringify(name)}: `}${body}`;
  const last = node.children?.at(-1);
  const end = nodeEnd(node) - 1;
  return last === undefined
    ? `${text.slice(0, end)}${entry}${eol}${unit.repeat(at.length)}${text.slice(end)}`
    : `${text.slice(0, nodeEnd(last))},${entry}${text.slice(nodeEnd(last))}`;
}

/** Returns the text with a different value at an existing path. @throws SettingsError */
export function replaceValue(text: string, path: JsonPath, value: unknown): string {
  const node = findNodeAtLocation(parseText(text).root, [...path]);
  if (node === undefined) throw new SettingsError(`"${path.join(".")}" is missing`);
  const eol = text.includes("\r\n") ? "\r\n" : "\n";
  const unit = /^([ \t]+)\S/m.exec(text)?.[1] ?? "  ";
  const body = JSON.stringify(value, null, unit).replaceAll("\n", eol + unit.repeat(path.length));
  return text.slice(0, node.offset) + body + text.slice(nodeEnd(node));
}

/** Removes the value at a path. @throws SettingsError */
export function removeValue(text: string, path: JsonPath): string {
  const { root } = parseText(text);
  const { children = [] } = findNodeAtLocation(root, path.slice(0, -1)) as Node;
  const key = path.at(-1);
  const at = typeof key === "number" ? key : children.findIndex((child) => propertyName(child) === key);
  const child = children[at] as Node;
  const [before, after] = [text.slice(0, child.offset), text.slice(nodeEnd(child))];
  const [previous, next] = [children[at - 1], children[at + 1]];
  const candidates: string[] = [];
  if (previous !== undefined) {
    const gap = withoutComma(text.slice(nodeEnd(previous), child.offset));
    const head = text.slice(0, nodeEnd(previous));
    candidates.push(head + gap.replace(/[ \t\r\n]+$/, "") + after, head + gap + after);
  } else if (next !== undefined) {
    const gap = withoutComma(text.slice(nodeEnd(child), next.offset));
    candidates.push(before + gap.trimStart() + text.slice(next.offset), before + gap + text.slice(next.offset));
  } else {
    const rest = withoutComma(after.slice(0, after.search(/[}\]]/))) + after.slice(after.search(/[}\]]/));
    candidates.push(before.replace(/\r?\n[ \t]*$/, "") + rest.replace(/^[ \t]*\r?\n[ \t]*/, ""), before + rest);
  }
  const expectedValue = valueWithout(nodeValue(root), path);
  const whole = candidates.find((each) => parsesTo(each, expectedValue));
  if (whole === undefined)
    throw new SettingsError("the hook cannot be removed without changing other text; remove it by hand");
  return whole;
}

/** Removes the first comma that is not in a comment. */
const withoutComma = (gap: string): string => gap.replace(/^((?:[ \t\r\n]+|\/\/[^\r\n]*|\/\*[^]*?\*\/)*),/, "$1");

function valueWithout(value: unknown, [key, ...rest]: JsonPath): unknown {
  if (Array.isArray(value))
    return value.flatMap((each: unknown, i) =>
      i !== key ? [each] : rest.length === 0 ? [] : [valueWithout(each, rest)],
    );
  return Object.fromEntries(
    Object.entries(value as object).flatMap(([name, each]) =>
      name !== key ? [[name, each]] : rest.length === 0 ? [] : [[name, valueWithout(each, rest)]],
    ),
  );
}

function parsesTo(text: string, expectedValue: unknown): boolean {
  try {
    return isDeepStrictEqual(parseJsonc(text), expectedValue);
  } catch {
    return false;
  }
}
