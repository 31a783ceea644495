/** Parses YAML into JSON values and their positions. Reports everything that JSON cannot represent as a fault. */
import { unescapePointerToken } from "./json-pointer.ts";
import {
  isAlias,
  isMap,
  isScalar,
  isSeq,
  Composer,
  LineCounter,
  Parser,
  visit,
  type CST,
  type Document,
  type ErrorCode,
  type Node,
  type Scalar,
  type YAMLMap,
  type YAMLParseError,
  type YAMLWarning,
} from "yaml";
import { keepsValue, MAX_JSON_DEPTH, type JsonValue } from "./json.ts";
import { escapeCharacter, formatCodePoint } from "./text.ts";
import { findExceededBound } from "./yaml-depth.ts";

/** A position in a file. Line and column start at 1. */
export interface SourcePosition {
  line: number;
  column: number;
}

export interface YamlValue {
  value: JsonValue;
  document: Document;
  /** Returns the position of an offset in the file. */
  place(offset: number): SourcePosition;
  /** Returns the position of the value at an RFC 6901 pointer, or of the nearest existing parent. */
  locate(pointer: string, at?: PlaceOptions): SourcePosition;
}

interface PlaceOptions {
  /** Whether to locate the key instead of the value. */
  key?: boolean;
  /** Offset in a string value, in UTF-16 code units. */
  offset?: number;
}

interface YamlFault extends Partial<SourcePosition> {
  message: string;
}

// Maximum number of nodes after aliases are expanded, as a multiple of the nodes in the file. Protects against files
// that double their size on each line.
const MAX_UNFOLDING = 50;
// Maximum number of aliases. Limited because the parser scans all anchors for each alias.
export const MAX_ALIASES = 1_000;
export const MAX_DOCUMENTS = 2_000;

/**
 * Characters that YAML does not permit in a file, line breaks that some readers and editors ignore, and marks that
 * reorder a line. With them, two readers can disagree on what is a comment.
 */
const UNSAFE_CHARACTER =
  /\r(?!\n)|[^\t\n\r\x20-\x7e\xa0-\u2027\u202f-\u2065\u206a-\ufefe\uff00-\ufffd\u{10000}-\u{10ffff}]/u;

/**
 * Options of the YAML library. Without `resolveKnownTags: false`, it resolves tags of YAML 1.1 such as `!!set`, whose
 * values are not JSON. Duplicate keys are detected below, because the library's check is quadratic.
 */
export const YAML_OPTIONS = {
  version: "1.2",
  schema: "core",
  resolveKnownTags: false,
  merge: false,
  uniqueKeys: false,
  prettyErrors: false,
} as const;

/**
 * Parses YAML 1.2 with the core schema. Omits empty documents. Reports everything that JSON cannot represent, and
 * everything that another reader could read differently, as a fault.
 */
export function readYaml(source: string): { values: YamlValue[]; faults: YamlFault[] } {
  const text = source.replace(/^\uFEFF/, "");
  const lines = new LineCounter();
  const values: YamlValue[] = [];
  const faults: YamlFault[] = [];
  const positionAt = (offset: number): SourcePosition => {
    const { line, col } = lines.linePos(offset);
    return { line, column: col };
  };
  const reportFault = (offset: number, message: string): void => void faults.push({ ...positionAt(offset), message });
  const unreadable = findUnreadableText(text);
  if (unreadable !== null) {
    // Count the lines here, because the parser has not run.
    lines.addNewLine(0);
    for (let at = text.indexOf("\n"); at >= 0 && at < unreadable.offset; at = text.indexOf("\n", at + 1))
      lines.addNewLine(at + 1);
    reportFault(unreadable.offset, unreadable.message);
    return { values, faults };
  }
  for (const document of parse(text, lines, reportFault)) {
    // A warning means an unknown tag, so the value is unknown. Report only the first problem, because it can cause the
    // later ones.
    const [wrong] = [...document.errors, ...document.warnings].sort((a, b) => a.pos[0] - b.pos[0]);
    if (wrong !== undefined) {
      reportFault(wrong.pos[0], explainYamlError(wrong) + quotingHint(text, wrong));
      continue;
    }
    if (document.contents === null) continue;
    if (isScalar(document.contents) && document.contents.value === null) continue;
    const documentFaults = findNonJsonFaults(document);
    for (const { offset, message } of documentFaults) reportFault(offset, message);
    if (documentFaults.length > 0) continue;
    try {
      const value = JSON.parse(JSON.stringify(document.toJS({ maxAliasCount: MAX_UNFOLDING }))) as JsonValue;
      values.push({
        value,
        document,
        place: positionAt,
        locate: (pointer, at = {}) => positionAt(offsetOf(document, text, pointer, at)),
      });
    } catch {
      reportFault(
        document.contents.range?.[0] ?? 0,
        `aliases unfold to more than ${MAX_UNFOLDING} times their number of nodes; write the values out`,
      );
    }
  }
  return { values, faults };
}

/** Returns the first fault that must be found before the text is parsed; null if there is none. */
function findUnreadableText(text: string): { offset: number; message: string } | null {
  const offset = text.search(UNSAFE_CHARACTER);
  if (offset >= 0) {
    const character = String.fromCodePoint(text.codePointAt(offset) as number);
    const message =
      character === "\r"
        ? "the file contains a carriage return without a line feed; end lines with a line feed"
        : `the file contains the invisible character ${formatCodePoint(character)}; remove it, or write ${escapeCharacter(character)} in double quotes`;
    return { offset, message };
  }
  const beyond = findExceededBound(text, MAX_JSON_DEPTH, MAX_DOCUMENTS);
  if (beyond === null) return null;
  const message =
    beyond.what === "depth"
      ? `the file nests deeper than ${MAX_JSON_DEPTH} levels`
      : `the file has more than ${MAX_DOCUMENTS} documents; split it`;
  return { offset: beyond.offset, message };
}

/**
 * Parses without stack traces and source excerpts, because a file can cause one error per character. Reports directives
 * and then parses nothing, because a directive can declare another version of YAML or redefine tags.
 */
function parse(text: string, lines: LineCounter, reportFault: (offset: number, message: string) => void): Document[] {
  const depth = Error.stackTraceLimit;
  Error.stackTraceLimit = 0;
  try {
    const tokens = [...new Parser(lines.addNewLine).parse(text)];
    const directives = tokens.filter(({ type }) => type === "directive");
    for (const { offset, source } of directives as CST.Directive[])
      reportFault(offset, `files are YAML 1.2 without directives; remove the line "${source}"`);
    return directives.length > 0 ? [] : [...new Composer(YAML_OPTIONS).compose(tokens)];
  } finally {
    Error.stackTraceLimit = depth;
  }
}

function findNonJsonFaults(document: Document): { offset: number; message: string }[] {
  const faults: { offset: number; message: string }[] = [];
  // An alias refers to the last anchor with its name. `resolve` would walk the document for each alias.
  const anchors = new Map<string, Node>();
  let aliases = 0;
  const reportFault = (node: Node | null, message: string): void => {
    faults.push({ offset: node?.range?.[0] ?? 0, message });
  };
  const remember = (node: Node): void => {
    if (!isAlias(node) && node.anchor !== undefined) anchors.set(node.anchor, node);
  };
  visit(document, {
    Node(_, node, path) {
      remember(node);
      if (isMap(node)) for (const key of findRepeatedKeys(node)) reportFault(key, "map keys must be unique");
      if (path.filter(isCollection).length < MAX_JSON_DEPTH || !isCollection(node)) return undefined;
      reportFault(node, `the file nests deeper than ${MAX_JSON_DEPTH} levels`);
      return visit.SKIP;
    },
    Alias(_, node, path) {
      if (++aliases > MAX_ALIASES) {
        reportFault(node, `the document has more than ${MAX_ALIASES} aliases; write the values out`);
        return visit.BREAK;
      }
      const target = anchors.get(node.source);
      if (target === undefined) reportFault(node, `there is no anchor "&${node.source}" before this alias`);
      else if (path.includes(target))
        reportFault(node, `"*${node.source}" refers to a value that contains it; write the value out`);
      return undefined;
    },
    Scalar(_, node) {
      remember(node);
      const message = scalarFault(node);
      if (message !== null) reportFault(node, message);
    },
    Pair(_, { key }) {
      if (!isScalar(key) || typeof key.value !== "string")
        reportFault(key as Node | null, "keys must be strings; put quotes around them");
      else if (key.value === "<<" && key.type === "PLAIN")
        reportFault(key as Node, "merge keys are not part of YAML 1.2; write the keys out");
    },
  });
  return faults;
}

/** Returns every key that duplicates an earlier key of the map, however its accents are composed. */
function findRepeatedKeys({ items }: YAMLMap): Scalar[] {
  const seen = new Set<unknown>();
  const repeated: Scalar[] = [];
  for (const { key } of items) {
    if (!isScalar(key)) continue;
    const name = typeof key.value === "string" ? key.value.normalize("NFC") : key.value;
    if (seen.has(name)) repeated.push(key);
    seen.add(name);
  }
  return repeated;
}

function isCollection(node: unknown): boolean {
  return isMap(node) || isSeq(node);
}

function scalarFault({ value, source }: Scalar): string | null {
  if (typeof value === "string")
    return /\p{Surrogate}/u.test(value) ? "the string contains half of a surrogate pair" : null;
  if (value === null || typeof value === "boolean") return null;
  if (typeof value !== "number") return "this value is not a string, number, boolean or null; put quotes around it";
  const isExact = (!Number.isInteger(value) || Number.isSafeInteger(value)) && keepsValue(source ?? String(value));
  return isExact ? null : `the number ${source ?? String(value)} cannot be represented exactly; put quotes around it`;
}

function offsetOf(document: Document, text: string, pointer: string, { key = false, offset }: PlaceOptions): number {
  let node: unknown = document.contents;
  let at = document.contents?.range?.[0] ?? 0;
  let keyAt = at;
  for (const raw of pointer.split("/").slice(1)) {
    const segment = unescapePointerToken(raw);
    const inside: unknown = isAlias(node) ? node.resolve(document) : node;
    let next: unknown;
    if (isMap(inside)) {
      const pair = inside.items.find((item) => isScalar(item.key) && item.key.value === segment);
      if (pair === undefined) return at;
      keyAt = (pair.key as Node).range?.[0] ?? at;
      next = pair.value;
    } else if (isSeq(inside)) {
      next = inside.items[Number(segment)];
      keyAt = (next as Node | undefined)?.range?.[0] ?? at;
    } else {
      return at;
    }
    at = (next as Node | null | undefined)?.range?.[0] ?? keyAt;
    node = next;
  }
  if (key) return keyAt;
  return offset !== undefined && isScalar(node) ? (placeInText(node, text, offset) ?? at) : at;
}

/**
 * Returns the position in the file of a character of a string value; null if escapes make the position unknown. YAML's
 * line folding changes only white space.
 */
function placeInText(node: Scalar, text: string, offset: number): number | null {
  const value = String(node.value);
  let at = node.range?.[0] ?? 0;
  if (node.type === "QUOTE_DOUBLE" || node.type === "QUOTE_SINGLE") at++;
  else if (node.type !== "PLAIN") at = text.indexOf("\n", at) + 1;
  let last = at;
  for (let i = 0; i <= offset && i < value.length; i++) {
    if (/\s/.test(value[i] as string)) continue;
    while (/\s/.test(text[at] ?? "")) at++;
    if (text[at] !== value[i]) return null;
    last = at++;
  }
  return offset < value.length ? last : at;
}

/** Parser errors that occur if an unquoted string contains a colon or starts with a YAML indicator. */
const UNQUOTED_TEXT_ERRORS: ReadonlySet<ErrorCode> = new Set([
  "BLOCK_AS_IMPLICIT_KEY",
  "MULTILINE_IMPLICIT_KEY",
  "TAG_RESOLVE_FAILED",
  "UNEXPECTED_TOKEN",
  "BAD_SCALAR_START",
]);
const TEXT_KEY = /^[ -]*(when|per|sum|name|description|reason): +\S/;
const ANY_KEY = /^[ -]*[A-Za-z_]+:( |$)/;

/** Returns a hint if the fault is in an unquoted string, where colons, `!` and quotes have a meaning in YAML. */
function quotingHint(text: string, { code, pos: [offset] }: YAMLParseError | YAMLWarning): string {
  if (!UNQUOTED_TEXT_ERRORS.has(code)) return "";
  const upTo = text.slice(0, offset + 1).split("\n");
  const rest = text.slice(offset + 1).split("\n", 1)[0] ?? "";
  upTo.push((upTo.pop() ?? "") + rest);
  const line = upTo.findLast((candidate) => ANY_KEY.test(candidate)) ?? "";
  const [, key] = TEXT_KEY.exec(line) ?? [];
  if (key === undefined) return "";
  const noun = key === "when" ? "condition" : key === "per" || key === "sum" ? "expression" : "text";
  return `; quote the ${noun}, or begin it on a line of its own behind "${key}: >-"`;
}

function explainYamlError({ code, message }: YAMLParseError | YAMLWarning): string {
  if (code === "BLOCK_AS_IMPLICIT_KEY") return "a colon and a space end an unquoted string";
  if (/call stack/i.test(message)) return `the file nests deeper than ${MAX_JSON_DEPTH} levels`;
  const [, tag] = /^Unresolved tag: (.*)$/.exec(message) ?? [];
  if (tag !== undefined) {
    const name = tag.replace(/^tag:yaml\.org,2002:/, "!!");
    return `the tag ${name} does not fit the value or is not supported; remove it`;
  }
  const first = message.split(" at line ")[0] as string;
  return first.charAt(0).toLowerCase() + first.slice(1);
}
