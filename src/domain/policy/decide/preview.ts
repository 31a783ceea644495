/**
 * Builds the preview of a request, which is the sentence of a rule's `approval.preview` with values from the request.
 * The agent controls the values, so readers must be able to distinguish them from text of the policy.
 */
import { unescapePointerToken } from "../../json-pointer.ts";
import { clipText, formatCodePoint } from "../../text.ts";
import { renderMarkedText } from "../../visible-text.ts";
import { MEMBER_PATTERN, parseMember } from "../condition/condition-members.ts";

/** Maximum number of values in one preview. */
const MAX_PREVIEW_VALUES = 8;
/** Maximum number of characters of a value, both before and after hidden characters are escaped. */
const MAX_VALUE = 60;
const MAX_MARKED = 160;

const NAMES = ["agent", "tool", "operation"] as const;
type Name = (typeof NAMES)[number];

/** A part of a preview: literal text, a name of the action, or the JSON pointer of a member of `{params, context}`. */
export type PreviewPart = { text: string } | { name: Name } | { pointer: string; source: string };

/** The action that a preview describes. */
export interface PreviewedAction {
  agent_id: string;
  tool: string;
  operation: string;
  params: Readonly<Record<string, unknown>>;
  context: Readonly<Record<string, unknown>>;
}

/**
 * Parses a template such as `Refund {params.amount} to {params.customer}`. If the template has a fault, returns the
 * fault as a sentence.
 * @param noun the noun for the template in this sentence
 * @example parsePreview("Merge {params.branch}") // [{ text: "Merge " }, { pointer: "/params/branch", source: "params.branch" }]
 */
export function parsePreview(template: string, noun: "preview" | "effect key" = "preview"): PreviewPart[] | string {
  const literal = template.replaceAll(/\{[^{}]*\}/g, "");
  if (/[{}]/.test(literal)) return 'a brace has no partner; write a value as "{params.amount}"';
  if (QUOTES.test(literal))
    return `remove the quotation marks${noun === "preview" ? ": the service adds them to string values" : ""}`;
  if (renderMarkedText(literal) !== literal)
    return `the text has hidden or misleading characters: ${clipText(renderMarkedText(literal), 200)}`;
  const parts: PreviewPart[] = [];
  for (const [i, part] of template.split(/\{([^{}]*)\}/).entries()) {
    if (i % 2 === 0) {
      if (part !== "") parts.push({ text: part });
    } else if (isName(part)) parts.push({ name: part });
    else if (new RegExp(MEMBER_PATTERN).test(part)) parts.push({ pointer: parseMember(part), source: part });
    else
      return `"{${clipText(part, 80)}}" names no value; write a member such as {params.amount}, or {agent}, {tool} or {operation}`;
  }
  const values = parts.filter((part) => !("text" in part)).length;
  if (values === 0) return `the ${noun} names no value; write one as "{params.amount}"`;
  if (values > MAX_PREVIEW_VALUES)
    return `the ${noun} has ${values} values; at most ${MAX_PREVIEW_VALUES} are possible`;
  return parts;
}

const isName = (text: string): text is Name => (NAMES as readonly string[]).includes(text);

/**
 * Returns the preview as one line of at most about 2,000 characters.
 * @example renderPreview(parts, action) // 'Refund 120 "EUR" to "cus_1"'
 */
export function renderPreview(parts: readonly PreviewPart[], action: PreviewedAction): string {
  const { agent_id: agent, tool, operation, params, context } = action;
  return parts
    .map((part) => {
      if ("text" in part) return part.text;
      if ("name" in part) return quote({ agent, tool, operation }[part.name]);
      return renderValue(findMember({ params, context }, part.pointer));
    })
    .join("");
}

/** Returns the member's value; undefined if the request has no such member. */
export function findMember(request: object, pointer: string): unknown {
  let value: unknown = request;
  for (const token of pointer.slice(1).split("/")) {
    const name = unescapePointerToken(token);
    if (typeof value !== "object" || value === null || Array.isArray(value) || !Object.hasOwn(value, name))
      return undefined;
    value = (value as Record<string, unknown>)[name];
  }
  return value;
}

/**
 * Renders a value of a request on one line. Puts only strings in quotation marks, so that the string "120" differs from
 * the number 120.
 */
export function renderValue(value: unknown): string {
  if (value === undefined) return "(not given)";
  if (typeof value === "string") return quote(value);
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  return Array.isArray(value) ? `(list of ${value.length})` : `(object of ${Object.keys(value).length})`;
}

/** Characters that look like a quotation mark, except apostrophes. */
const QUOTES = /["\u201c-\u201f\u00ab\u00bb\u2033\u2036\u02ba\u02ee\u05f4\u275d\u275e\u3003\u301d-\u301f\uff02]/;
const QUOTES_OR_BACKSLASH = new RegExp(`${QUOTES.source}|\\\\`, "gu");
const RIGHT_TO_LEFT =
  /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;

function quote(text: string): string {
  const clipped = clipText(text, MAX_VALUE);
  const escaped = clipped.replaceAll(QUOTES_OR_BACKSLASH, (mark) =>
    mark === '"' || mark === "\\" ? `\\${mark}` : `[${formatCodePoint(mark)}]`,
  );
  const marked = renderMarkedText(escaped);
  const shown = clipText(marked, MAX_MARKED);
  const isCut = clipped !== text || shown !== marked;
  // Isolate the value, so that right-to-left letters do not reorder the text around it.
  const isolated = RIGHT_TO_LEFT.test(shown) ? `\u2068${shown}\u2069` : shown;
  return `"${isolated}"${isCut ? ` (${text.length.toLocaleString("en")} characters)` : ""}`;
}
