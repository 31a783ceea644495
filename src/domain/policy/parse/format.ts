/**
 * Formats policy files: white space, and numbers in their usual notation. Keeps comments, the order of keys, quotes,
 * and flow or block style.
 */
import {
  isMap,
  isScalar,
  Lexer,
  parseAllDocuments,
  visit,
  type Document,
  type Node,
  type Scalar,
  type YAMLMap,
  type YAMLSeq,
} from "yaml";
import { canonicalText } from "../../canonical.ts";
import { reattachComments } from "./format-comments.ts";
import { MAX_JSON_DEPTH } from "../../json.ts";
import { escapeCharacter } from "../../text.ts";
import { findExceededBound } from "../../yaml-depth.ts";
import { MAX_DOCUMENTS, readYaml, YAML_OPTIONS } from "../../yaml.ts";

/** Width at which unquoted text is wrapped. Does not apply to text in `>-`, which keeps its line breaks. */
const WIDTH = 140;

/** Characters that an editor does not show: format characters, and line and paragraph separators. */
const INVISIBLE = /[\p{Cf}\p{Zl}\p{Zp}\u0085]/gu;

type FormatResult = { ok: true; text: string } | { ok: false; message: string };

/** Maximum number of passes. Each pass moves a misplaced comment by only one step. */
const MAX_ROUNDS = 5;

/**
 * Formats a file. Returns a fault if the meaning would change, a comment would be lost, or a second run would produce a
 * different result.
 */
export function formatYaml(source: string): FormatResult {
  const refuse = (reason: string): FormatResult => ({ ok: false, message: `the file was not changed: ${reason}` });
  let text = formatOnce(source);
  for (let round = 1; text !== null && round <= MAX_ROUNDS; round++) {
    const next = formatOnce(text);
    if (next !== text) {
      text = next;
      continue;
    }
    const reason = findDifference(source, text);
    return reason === null ? { ok: true, text } : refuse(reason);
  }
  return refuse(text === null ? "it cannot be read, or is empty" : "repeated formatting does not converge");
}

function findDifference(before: string, after: string): string | null {
  const [was, is] = [readYaml(before), readYaml(after)];
  if (was.faults.length > 0) return "it cannot be read";
  const meaning = ({ values }: typeof was): string => canonicalText(values.map(({ value }) => value));
  if (is.faults.length > 0 || meaning(was) !== meaning(is)) return "its meaning would change";
  return commentsOf(before) === commentsOf(after) ? null : "a comment would be lost";
}

function commentsOf(text: string): string {
  return [...new Lexer().lex(text)]
    .filter((token) => token.startsWith("#"))
    .map((comment) => comment.trimEnd())
    .sort()
    .join("\n");
}

function parse(source: string): Document.Parsed[] {
  return [...parseAllDocuments(source, { ...YAML_OPTIONS, prettyErrors: true })] as Document.Parsed[];
}

/** Formats a source once. Returns null if it is empty or cannot be parsed. */
function formatOnce(source: string): string | null {
  const text = source.replace(/^\uFEFF/, "").replaceAll(/\r\n?/g, "\n");
  if (findExceededBound(text, MAX_JSON_DEPTH, MAX_DOCUMENTS) !== null) return null;
  const documents = parse(text);
  if (documents.length === 0 || documents.some(({ errors, warnings }) => errors.length + warnings.length > 0))
    return null;
  const parts = documents.map((document, i) => {
    if (document.directives !== undefined) {
      document.directives.docStart = i > 0 || null;
      document.directives.docEnd = false;
    }
    if (isEmpty(document))
      return `${i > 0 ? "---\n" : ""}${[...new Lexer().lex(String(document))]
        .filter((token) => token.startsWith("#"))
        .map((comment) => `${comment}\n`)
        .join("")}`;
    reattachComments(document, text);
    visit(document, { Collection: (_, node) => setFlowSpacing(node) });
    return document.toString({ indent: 2, lineWidth: WIDTH, doubleQuotedMinMultiLineLength: 1e9, blockQuote: true });
  });
  return escapeInvisible(restoreLineBreaks(text, parts.join(""))).replaceAll(/[ \t]+$/gm, "");
}

/**
 * Replaces invisible characters in double-quoted strings with escapes, such as `\u2028`. The printer does not escape
 * them.
 */
function escapeInvisible(text: string): string {
  if (text.search(INVISIBLE) < 0) return text;
  const ranges: [number, number][] = [];
  for (const document of parse(text))
    visit(document, {
      Scalar(_, node: Scalar) {
        const [from, to] = (node as Node).range as [number, number, number];
        if (node.type === "QUOTE_DOUBLE") ranges.push([from, to]);
      },
    });
  let escaped = text;
  for (const [from, to] of ranges.reverse())
    escaped = escaped.slice(0, from) + escaped.slice(from, to).replace(INVISIBLE, escapeCharacter) + escaped.slice(to);
  return escaped;
}

function isEmpty({ contents }: Document): boolean {
  return contents === null || (isScalar(contents) && contents.value === null);
}

/** Sets the spacing of `{ a: 1 }` and `[a]`, and prints a flow collection on one line unless it contains a comment. */
function setFlowSpacing(node: YAMLMap | YAMLSeq): void {
  const print = node.toString.bind(node) as (context: PrintContext, ...rest: unknown[]) => string;
  node.toString = ((context: PrintContext, ...rest: unknown[]): string => {
    if (context.inFlow !== true && node.flow !== true) return print(context, ...rest);
    return print(
      { ...context, flowCollectionPadding: isMap(node) ? " " : "", options: { ...context.options, lineWidth: 0 } },
      ...rest,
    );
  }) as typeof node.toString;
}

/** The context of the library's printer. */
interface PrintContext {
  inFlow: boolean | null;
  flowCollectionPadding: string;
  options: { lineWidth: number };
}

/** Restores the author's line breaks in `>-` strings, which the printer would rewrap. */
function restoreLineBreaks(before: string, after: string): string {
  const [was, is] = [findFolds(before), findFolds(after)];
  if (was.length !== is.length) return after;
  let text = after;
  for (let i = is.length - 1; i >= 0; i--) {
    const [old, fold] = [was[i], is[i]] as [Fold, Fold];
    const lines = old.lines.map((line) => (line.trim() === "" ? "" : " ".repeat(fold.indent) + line.slice(old.indent)));
    text = `${text.slice(0, fold.start)}${lines.join("\n")}\n${text.slice(fold.end)}`;
  }
  // Keep the printer's version if the restored line breaks would change the value, for example because an indentation
  // indicator becomes wrong.
  return findDifference(after, text) === null ? text : after;
}

/** The lines of a folded block scalar (`>`). `start` and `end` are offsets in the text. */
interface Fold {
  /** Start of the first line after the line with `>`. */
  start: number;
  /** Exclusive. Trailing empty lines are not included. */
  end: number;
  indent: number;
  lines: string[];
}

function findFolds(text: string): Fold[] {
  const folds: Fold[] = [];
  for (const document of parse(text)) {
    visit(document, {
      Scalar(_, node: Scalar) {
        if (node.type !== "BLOCK_FOLDED") return;
        const [from, to] = (node as Node).range as [number, number, number];
        const start = text.indexOf("\n", from) + 1;
        const body = text.slice(start, to).replace(/\s+$/, "");
        const lines = body.split("\n");
        folds.push({
          start,
          end: Math.min(start + body.length + 1, text.length),
          indent: /^ */.exec(lines.find((line) => line.trim() !== "") ?? "")?.[0].length ?? 0,
          lines,
        });
      },
    });
  }
  return folds;
}
