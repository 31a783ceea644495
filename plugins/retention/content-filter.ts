/** Selects actions, for erasures and legal holds, by the content of their request, result and other stored data. */
import {
  decodeEdit,
  decodeSaltedFacts,
  decodeQuestions,
  type JsonObject,
  type JsonValue,
  parseStoredRequest,
} from "../../src/core.ts";
import { Refusal } from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import { decodeMeta } from "../actions/api.ts";

type Scalar = string | number | boolean | null;

export type ContentFilter = (row: ActionRow) => boolean;

const ROOTS = ["params", "context", "result"];

/**
 * Returns a filter for actions that contain exactly this value, at an RFC 6901 pointer or anywhere. Throws
 * VALIDATION_FAILED for an invalid pointer. Without a pointer, throws VALIDATION_FAILED for null, booleans and the empty
 * string, which nearly every action contains.
 */
export function createContentFilter(value: Scalar, pointer?: string): ContentFilter {
  if (pointer === undefined) {
    if (value === null || value === "" || typeof value === "boolean")
      throw validationError("/value", "is too common to search for everywhere; send a `pointer` as well");
    return orUnreadable((row) => contentsOf(row).some((content) => containsValue(content, value)));
  }
  const path = parsePointer(pointer);
  return orUnreadable((row) => contentsOf(row).some((content) => valueAt(content, path) === value));
}

/**
 * Also selects actions whose content cannot be read because someone altered the store: they may contain anything. An
 * erasure verifies each action, so it reports these actions as altered and does not erase them.
 */
function orUnreadable(selects: ContentFilter): ContentFilter {
  return (row) => {
    try {
      return selects(row);
    } catch {
      return true;
    }
  };
}

/** Minimum length of a person's identifier. A shorter identifier would match actions of other people. */
const MIN_SUBJECT_LENGTH = 3;

/**
 * Returns a filter for actions that mention a person in their parameters, context, metadata, result, questions or
 * answers. A string or member name mentions the person if it contains the identifier as a whole word (ignoring case,
 * Unicode form and percent-encoding); a number, if it equals the identifier. Throws VALIDATION_FAILED for an identifier
 * that is too short.
 */
export const createSubjectFilter = (subject: string): ContentFilter => filterMentions(subject, isInsideWord);

/**
 * Returns the filter for an erasure. Unlike `createSubjectFilter`, it does not match an e-mail address that is part of a
 * longer address, because an erasure is irreversible. A legal hold may match too much, because it loses no data.
 */
export const createErasureSubjectFilter = (subject: string): ContentFilter =>
  filterMentions(subject, subject.includes("@") ? isInsideAddress : isInsideWord);

/** Tests whether a match is only part of a longer identifier, by the texts before and after it. */
type PartTest = (before: string, after: string) => boolean;

/** "joann@example.org" does not mention "ann@example.org". */
const isInsideWord: PartTest = (before, after) => /[\p{L}\p{N}]$/u.test(before) || /^[\p{L}\p{N}]/u.test(after);

/** "jo.ann@example.org" and "ann@example.org.uk" do not mention "ann@example.org" either. */
const isInsideAddress: PartTest = (before, after) =>
  /[\p{L}\p{N}](?:\.|[_%+'-]+)?$/u.test(before) || /^(?:\.|-+)?[\p{L}\p{N}]/u.test(after);

function filterMentions(subject: string, isPart: PartTest): ContentFilter {
  const foldedSubject = foldText(subject.trim());
  if (foldedSubject.length < MIN_SUBJECT_LENGTH)
    throw validationError("/subject", `must have at least ${MIN_SUBJECT_LENGTH} characters, such as an e-mail address`);
  return orUnreadable((row) =>
    [
      // Search the members' content without the names `params`, `context` and `result`, which every action has.
      ...contentsOf(row).flatMap(Object.values),
      readUnlessAltered(() => decodeMeta(row.meta)),
      readUnlessAltered(() => questionTexts(row)),
    ].some((content) => someScalar(content, (value) => mentions(value, foldedSubject, isPart), "names too")),
  );
}

/** Returns null if someone altered the data, so that the other data of the row is still searched. */
function readUnlessAltered(read: () => JsonValue): JsonValue {
  try {
    return read();
  } catch {
    return null;
  }
}

const questionTexts = ({ questions }: ActionRow): string[] =>
  decodeQuestions(questions).flatMap(({ question, answer }) => [question.text, answer?.text ?? ""]);

/** Normalizes Unicode, because "é" can be one code point or two. */
const foldText = (text: string): string => text.normalize("NFC").toLowerCase();

function mentions(value: JsonValue, foldedSubject: string, isPart: PartTest): boolean {
  if (typeof value === "number") return String(value) === foldedSubject;
  if (typeof value !== "string") return false;
  const texts = value.includes("%") ? [value, decodePercent(value)] : [value];
  return texts.map(foldText).some((text) => {
    for (let at = text.indexOf(foldedSubject); at >= 0; at = text.indexOf(foldedSubject, at + 1))
      // 64 characters are the longest local part of an address.
      if (!isPart(text.slice(Math.max(0, at - 64), at), text.slice(at + foldedSubject.length).slice(0, 64)))
        return true;
    return false;
  });
}

/** Decodes "%40" and the like. In a sequence that is not UTF-8, decodes only ASCII characters. */
const decodePercent = (text: string): string =>
  text.replace(/(?:%[0-9a-f]{2})+/gi, (encoded) => {
    try {
      return decodeURIComponent(encoded);
    } catch {
      return encoded.replace(/%[0-7][0-9a-f]/gi, decodeURIComponent);
    }
  });

/**
 * Returns the submitted request and the changed request, each with the result, and the data that the action's decisions
 * read. Throws SyntaxError if someone altered the row.
 */
function contentsOf(row: ActionRow): JsonObject[] {
  const requests = [parseStoredRequest(row), decodeEdit(row.effective)?.request ?? null];
  const result = row.result === null ? null : (JSON.parse(row.result) as JsonValue);
  const read = decodeSaltedFacts(row.past);
  if (row.past !== null && read.length === 0) throw new SyntaxError("the data that decisions read was altered");
  const past = read.flatMap(({ history = [] }) => history.flatMap(({ actions }) => actions));
  const facts = read.flatMap(({ sources = [] }) => sources.map(({ value }) => value));
  const metadata = read.flatMap(({ attributes }) => attributes?.agent_metadata ?? []);
  return [
    ...requests.flatMap((request) =>
      request === null ? [] : { params: request.params, context: request.context, result },
    ),
    ...past.map(({ params, context, result = null }) => ({ params, context, result })),
    ...[...facts, ...metadata].map((value) => ({ facts: value })),
  ];
}

function containsValue(content: JsonValue, value: Scalar): boolean {
  return someScalar(content, (one) => one === value);
}

/**
 * Returns true if a scalar in the value passes the test, or a member name if `names` is given. Iterates instead of
 * recursing, because values may be nested deeply.
 */
function someScalar(content: JsonValue, test: (value: JsonValue) => boolean, names?: "names too"): boolean {
  const open: JsonValue[] = [content];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (typeof next !== "object" || next === null) {
      if (test(next)) return true;
      continue;
    }
    if (names !== undefined && !Array.isArray(next)) open.push(...Object.keys(next));
    open.push(...Object.values(next as Record<string, JsonValue>));
  }
  return false;
}

function valueAt(content: JsonValue, path: readonly string[]): JsonValue | undefined {
  let current: JsonValue | undefined = content;
  for (const name of path) {
    if (typeof current !== "object" || current === null || !Object.hasOwn(current, name)) return undefined;
    current = (current as Record<string, JsonValue>)[name];
  }
  return current;
}

function parsePointer(pointer: string): string[] {
  const [, ...path] = pointer.split("/").map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
  if (!pointer.startsWith("/") || /~(?![01])/.test(pointer) || path.length < 2 || !ROOTS.includes(path[0] ?? ""))
    throw validationError(
      "/pointer",
      "must be an RFC 6901 pointer into params, context or result, such as /params/customer/email",
    );
  return path;
}

export function validationError(pointer: string, detail: string): Refusal {
  return new Refusal("VALIDATION_FAILED", `the body does not have the expected form: ${pointer}: ${detail}`, {
    errors: [{ pointer, detail }],
  });
}
