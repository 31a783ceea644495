/**
 * Suggests keys, values and names for expressions at a position in the text of a policy or of its tests. Pure. Works on
 * lines and their indentation, because a document is rarely valid YAML while a person types it.
 */
import type { Api } from "../../console/app/kit.ts";

type Vocabulary = Api["GET /v1/policy-vocabulary"]["response"];
type NamedVariable = Vocabulary["variables"][number];
type Tool = Vocabulary["tools"][number];

/** Names that the service knows, and names that the last valid text declares. */
export interface CompletionWords {
  vocabulary: Vocabulary;
  variables: readonly NamedVariable[];
  tools: readonly Tool[];
}

interface Suggestion {
  label: string;
  /** Text to insert instead of the label. */
  apply?: string;
  /** Type or kind, displayed next to the label. */
  detail?: string;
  /** Explanation of the selected suggestion. */
  info?: string;
}

export interface Completion {
  /** Start of the text that a suggestion replaces. */
  from: number;
  suggestions: Suggestion[];
}

/** The keywords of JSON Schema that the schema of policies uses. */
interface Schema {
  type?: string;
  const?: unknown;
  description?: string;
  properties?: Record<string, Schema>;
  patternProperties?: Record<string, Schema>;
  items?: Schema;
  anyOf?: Schema[];
}

/** The kind of text that is being completed. */
export type TextKind = "policy" | "tests";

/** Matches an entry whose value is an expression, up to the cursor. */
const EXPRESSION_KEY = /(?:^|[\s{,])(?:when|per|sum|cel):\s*(?:[|>][-+]?)?\s*["']?([^"]*)$/;
/** Matches a map in braces in which the cursor is in a later entry whose value is not an expression. */
const FLOW_ENTRY = /\{.*,\s*(?!(?:when|per|sum|cel):)\w+:\s*["']?[\w.*-]*$/;
const ITEM = "[]";

/**
 * Returns suggestions for a position; null if nothing can be suggested. The editor filters them by the typed text.
 * @example completeAt("rules:\n  - eff", 14, words) // { from: 11, suggestions: [{ label: "effect", … }, …] }
 */
export function completeAt(
  text: string,
  position: number,
  words: CompletionWords,
  kind: TextKind = "policy",
): Completion | null {
  const before = text.slice(0, position).split("\n");
  const line = (before.at(-1) ?? "").replace(/\r$/, "");
  if (/^\s*#|\s#[^"']*$/.test(line)) return null;
  const isExpression = (EXPRESSION_KEY.test(line) && !FLOW_ENTRY.test(line)) || isInBlockExpression(before);
  // Tests have no expressions.
  if (kind === "policy" && isExpression) return completeExpression(text.slice(0, position), words);
  const { path, textBefore } = locate(before);
  const key = /^[\w-]*$/.exec(textBefore);
  const schema = kind === "policy" ? words.vocabulary.schema : words.vocabulary.test_schema;
  if (key !== null) return completeKey(schemaAt(schema, path), key[0], position);
  const value = /^([\w-]+):\s+(?:\[[^\]]*?)?["']?([\w.*-]*)$/.exec(textBefore);
  return value === null
    ? null
    : completeValue(schema, { path: [...path, value[1] ?? ""], typed: value[2] ?? "", position }, words);
}

/** Returns true if the line continues a block such as `when: |`. */
function isInBlockExpression(before: readonly string[]): boolean {
  const indent = indentOf(before.at(-1) ?? "");
  for (const line of before.slice(0, -1).reverse()) {
    if (line.trim() === "" || indentOf(line) >= indent) continue;
    return /(?:^|\s)(?:when|per|sum|cel):\s*[|>][-+]?\s*$/.test(line);
  }
  return false;
}

const indentOf = (line: string): number => line.length - line.trimStart().length;

/** Matches a name and its members, such as `params.?order.amount`, at the end of the text. */
const NAME = /[A-Za-z_]\w*(?:\.\??\w*)*$/;
/** Matches a macro such as `history.any(h, …)`, and captures its name for the past action. */
const PAST_ACTION = /\bhistory\.(?:any|count|sum|last)\(\s*(\w+)\s*,/g;

function completeExpression(before: string, words: CompletionWords): Completion | null {
  const typed = NAME.exec(before)?.[0] ?? "";
  const word = typed.replaceAll(".?", ".");
  const [owner = ""] = word.split(".");
  const isPastAction = [...before.matchAll(PAST_ACTION)].some(([, name]) => name === owner);
  const { vocabulary, variables, tools } = words;
  const params = [...vocabulary.tools, ...tools].flatMap((tool) =>
    tool.params.map(({ name, type }) => ({ name: `params.${name}`, type: `${type}; ${tool.tool}` })),
  );
  const depth = word.split(".").length;
  const names = [...vocabulary.variables, ...variables, ...params]
    .map(({ name, type }) => ({ name: isPastAction ? name.replace(/^history\[\]/, owner) : name, type }))
    .filter(({ name }) => name.split(".").length === depth);
  const functions = vocabulary.functions
    .filter(({ method }) => !method)
    .filter(({ name }) => name.split(".").length === depth);
  const suggestions = [
    ...names.map(({ name, type }) => ({ label: name, detail: type })),
    ...functions.map(({ name, arity }) => ({ label: name, apply: `${name}(`, detail: describeArity(arity) })),
  ];
  const typedPrefix = word.slice(0, word.lastIndexOf(".") + 1);
  const from = before.length - typed.length;
  const matching = unique(suggestions).filter(({ label }) => label.startsWith(typedPrefix));
  if (typedPrefix === "") return { from, suggestions: matching };
  // The receiver as the person typed it, with `.?` for optional members.
  const receiver = /^.*\.\??/.exec(typed)?.[0] ?? "";
  const asWritten = (name: string): string => `${receiver}${name.slice(typedPrefix.length)}`;
  const members = matching.map(({ label, apply, ...rest }) => ({
    ...rest,
    label: asWritten(label),
    ...(apply === undefined ? {} : { apply: asWritten(apply) }),
  }));
  // After `.?`, only members can follow. After `.`, suggest methods as well, because every value can have them.
  if (receiver.endsWith("?")) return { from, suggestions: members };
  const methods = vocabulary.functions
    .filter(({ method }) => method)
    .map(({ name, arity }) => ({
      label: `${receiver}${name}`,
      apply: `${receiver}${name}(`,
      detail: describeArity(arity),
    }));
  return { from, suggestions: [...members, ...methods] };
}

const describeArity = (arity: readonly number[]): string =>
  `${arity.join(" or ")} ${arity.length === 1 && arity[0] === 1 ? "argument" : "arguments"}`;

function unique(suggestions: readonly Suggestion[]): Suggestion[] {
  return [
    ...new Map([...suggestions].reverse().map((suggestion) => [suggestion.label, suggestion])).values(),
  ].reverse();
}

function completeKey(schemas: readonly Schema[], typed: string, position: number): Completion | null {
  const suggestions = schemas.flatMap(({ properties = {} }) =>
    Object.entries(properties).map(([label, schema]) => ({
      label,
      apply: isNested(schema) ? `${label}:` : `${label}: `,
      ...(schema.description === undefined ? {} : { info: schema.description }),
    })),
  );
  return suggestions.length === 0 ? null : { from: position - typed.length, suggestions: unique(suggestions) };
}

function isNested(schema: Schema): boolean {
  return schema.properties !== undefined || schema.items?.properties !== undefined;
}

function completeValue(
  schema: unknown,
  { path, typed, position }: { path: readonly string[]; typed: string; position: number },
  { vocabulary, tools }: CompletionWords,
): Completion | null {
  const key = path.at(-1);
  const knownTools = [...vocabulary.tools, ...tools];
  const names: Readonly<Record<string, readonly (string | null)[]>> = {
    tool: knownTools.map(({ tool }) => tool),
    operation: knownTools.map(({ operation }) => operation),
    notify: vocabulary.channels,
    reviewers: vocabulary.reviewers,
    source: vocabulary.fact_sources.map(({ name }) => name),
  };
  const listed = (names[key ?? ""] ?? []).filter((name) => name !== null).map((label): Suggestion => ({ label }));
  const constants = schemaAt(schema, path).flatMap((value): Suggestion[] => {
    if (value.type === "boolean") return [{ label: "true" }, { label: "false" }];
    return typeof value.const === "string" ? [{ label: value.const }] : [];
  });
  const suggestions = unique([...listed, ...constants]);
  return suggestions.length === 0 ? null : { from: position - typed.length, suggestions };
}

/** Returns the schemas that a value at the path can have. */
function schemaAt(root: unknown, path: readonly string[]): Schema[] {
  return path.reduce(
    (schemas, key) =>
      schemas.flatMap((schema) => {
        const [named] = Object.values(schema.patternProperties ?? {});
        const next = key === ITEM ? schema.items : (schema.properties?.[key] ?? named);
        return next === undefined ? [] : alternatives(next);
      }),
    alternatives(root as Schema),
  );
}

function alternatives(schema: Schema): Schema[] {
  return schema.anyOf === undefined ? [schema] : schema.anyOf.flatMap(alternatives);
}

interface LocatedEntry {
  /** Keys from the root to the map that contains the position. `[]` stands for an item of a list. */
  path: string[];
  /** The entry's text before the position. */
  textBefore: string;
}

/** A parsed line: the columns of its dashes, and its key with the key's column. */
interface Row {
  dashes: number[];
  column: number;
  key: string | null;
}

function readRow(line: string): Row {
  const lead = /^(?:\s*-(?=\s|$))*\s*/.exec(line)?.[0] ?? "";
  const dashes = [...lead.matchAll(/-/g)].map(({ index }) => index);
  const key = /^"?([\w.-]+)"?:(?=\s|$)/.exec(line.slice(lead.length));
  return { dashes, column: lead.length, key: key?.[1] ?? null };
}

/** Returns the path of the map that contains the end of the last line, and the entry's text up to there. */
function locate(before: readonly string[]): LocatedEntry {
  const last = before.at(-1) ?? "";
  const open = last.lastIndexOf("{") > last.lastIndexOf("}") ? last.lastIndexOf("{") : -1;
  const head = open < 0 ? last : last.slice(0, open);
  const row = readRow(head);
  const path = pathOf(before.slice(0, -1), row);
  if (open < 0) return { path, textBefore: last.slice(row.column) };
  const entry =
    last
      .slice(open + 1)
      .split(",")
      .at(-1) ?? "";
  // Before the brace, the line has either a key or only the dash of a list item.
  return { path: row.key === null ? path : [...path, row.key], textBefore: entry.trimStart() };
}

/**
 * Returns the path of the map that contains a row.
 * @param above the rows above it
 */
function pathOf(above: readonly string[], row: Row): string[] {
  const path: string[] = [];
  // The parent key of a key is further left. The parent key of a dash can also be in the column of the dash.
  let limit = row.column;
  let isItem = false;
  const enterItems = (dashes: readonly number[]): void => {
    for (const dash of [...dashes].reverse()) {
      if (dash >= limit) continue;
      path.unshift(ITEM);
      limit = dash;
      isItem = true;
    }
  };
  enterItems(row.dashes);
  for (const line of [...above].reverse()) {
    if (limit === 0 && !isItem) break;
    if (line.trim() === "" || line.trimStart().startsWith("#")) continue;
    if (line.startsWith("---")) break;
    const { dashes, column, key } = readRow(line);
    if (key !== null && (column < limit || (isItem && column === limit))) {
      path.unshift(key);
      limit = column;
      isItem = false;
      enterItems(dashes);
    } else if (!isItem) enterItems(dashes);
  }
  return path;
}
