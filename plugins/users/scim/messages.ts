/** Renders and reads SCIM resources and errors in their JSON form (RFC 7643, RFC 7644). */
import {
  isJsonObject,
  readJsonObject,
  type JsonObject,
  type JsonValue,
  UnreadableRequest,
  utf8,
} from "../../../src/core.ts";
import { Refusal, type Reply } from "../../../src/plugin.ts";
import { ERRORS } from "../user-errors.ts";

export const CONTENT_TYPE = "application/scim+json";
const CORE = "urn:ietf:params:scim:schemas:core:2.0:";
/** Maximum size of a page. */
export const MAX_RESULTS = 1000;
const MESSAGES = "urn:ietf:params:scim:api:messages:2.0:";
export const USER_SCHEMA = `${CORE}User`;
export const GROUP_SCHEMA = `${CORE}Group`;

const SCIM_TYPES: Readonly<Record<string, string>> = {
  [ERRORS.SCIM_INVALID.code]: "invalidValue",
  [ERRORS.SCIM_PATH_INVALID.code]: "invalidPath",
  [ERRORS.SCIM_FILTER_INVALID.code]: "invalidFilter",
  [ERRORS.SCIM_IMMUTABLE.code]: "mutability",
  [ERRORS.SCIM_CONFLICT.code]: "uniqueness",
};

/** Runs a handler. Returns its refusals in the form that SCIM clients read. */
export async function withScimErrors(work: () => Promise<Reply>): Promise<Reply> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const { status } = error.kind;
    const scimType = SCIM_TYPES[error.code];
    return scimReply(status, {
      schemas: [`${MESSAGES}Error`],
      status: String(status),
      ...(scimType === undefined ? {} : { scimType }),
      detail: error.message,
    });
  }
}

export function scimReply(status: number, body: JsonObject, headers: Record<string, string> = {}): Reply {
  return { status, text: JSON.stringify(body), headers: { "Content-Type": CONTENT_TYPE, ...headers } };
}

/** Reads a body. Throws USERS_SCIM_INVALID if it is not a JSON object. */
export function readScimBody(text: string): JsonObject {
  try {
    return assertDistinctNames(readJsonObject(utf8(text)));
  } catch (error) {
    if (!(error instanceof UnreadableRequest)) throw error;
    throw new Refusal(ERRORS.SCIM_INVALID, `the body cannot be read: ${error.message}`);
  }
}

/**
 * Returns one page of a list.
 * @param startIndex position of the page's first resource, from 1
 */
export function renderPage<T>(
  all: readonly T[],
  { startIndex = 1, count = 100 }: { startIndex?: number; count?: number },
  render: (each: T) => JsonObject,
): JsonObject {
  const first = Math.max(startIndex, 1);
  const size = Math.min(Math.max(count, 0), MAX_RESULTS);
  const page = all.slice(first - 1, first - 1 + size).map(render);
  return {
    schemas: [`${MESSAGES}ListResponse`],
    totalResults: all.length,
    startIndex: first,
    itemsPerPage: page.length,
    Resources: page,
  };
}

/**
 * Throws USERS_SCIM_INVALID if two names stand for one attribute, such as `active`, `Active` and
 * `urn:ietf:params:scim:schemas:core:2.0:User:active`, because they could have different values.
 */
function assertDistinctNames(object: JsonObject): JsonObject {
  const names = Object.keys(object).map(normalizeAttributePath);
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice === undefined) return object;
  throw new Refusal(ERRORS.SCIM_INVALID, `the attribute ${twice.slice(0, 60)} appears twice`);
}

/** Returns a member by name, ignoring case as SCIM does for attribute names. */
export function findAttribute(object: JsonObject, name: string): JsonValue | undefined {
  const found = Object.keys(object).find((each) => each.toLowerCase() === name.toLowerCase());
  return found === undefined ? undefined : object[found];
}

/** Returns a string of 1 to `max` characters. Throws USERS_SCIM_INVALID for any other value. */
export function readText(value: JsonValue | undefined, name: string, max: number): string {
  if (typeof value === "string" && value.trim() !== "" && value.length <= max) return value;
  throw new Refusal(ERRORS.SCIM_INVALID, `${name} must be a string of 1 to ${max} characters`);
}

/**
 * Reads `active`, which some clients send as a string. Throws USERS_SCIM_INVALID for other values, because a wrong
 * guess could leave a user active who has left the organization.
 */
export function readActive(value: JsonValue): boolean {
  if (typeof value === "boolean") return value;
  const text = typeof value === "string" ? value.toLowerCase() : "";
  if (text === "true" || text === "false") return text === "true";
  throw new Refusal(ERRORS.SCIM_INVALID, `active must be true or false; got ${JSON.stringify(value).slice(0, 60)}`);
}

/** Reads ids from `[{ "value": "…" }]`. Throws USERS_SCIM_INVALID for any other value. */
export function readMemberIds(value: JsonValue | undefined): string[] {
  const list = value === undefined || value === null ? [] : Array.isArray(value) ? value : [value];
  return list.map((each) =>
    readText(isJsonObject(each) ? findAttribute(each, "value") : undefined, "members.value", 100),
  );
}

export interface Comparison {
  /** Name in lowercase, without the schema's URN. */
  attribute: string;
  value: string | boolean;
}

/** Matches the first comparison of a filter, or `and` with the next one. */
const COMPARISON = /(?:^\s*|\s+and\s+)(\S+)\s+eq\s+("(?:[^"\\]|\\.)*"|true|false)/giy;

/**
 * Parses comparisons of the form `attribute eq "value"` that are joined by `and`, the only supported filters. Throws
 * USERS_SCIM_FILTER_INVALID.
 * @param attributes names of the supported attributes, in lowercase
 * @example parseFilter('userName eq "ada"', ["username"]) // [{ attribute: "username", value: "ada" }]
 */
export function parseFilter(text: string, attributes: readonly string[]): Comparison[] {
  const matches = [...text.matchAll(COMPARISON)];
  const comparisons = matches.flatMap(([, path = "", literal = ""]): Comparison[] => {
    const attribute = normalizeAttributePath(path);
    try {
      const value = JSON.parse(literal.startsWith('"') ? literal : literal.toLowerCase()) as Comparison["value"];
      return attributes.includes(attribute) ? [{ attribute, value }] : [];
    } catch {
      // The value has an invalid escape. The error is thrown below.
      return [];
    }
  });
  const end = matches.reduce((_, match) => match.index + match[0].length, 0);
  if (comparisons.length > 0 && comparisons.length === matches.length && text.slice(end).trim() === "")
    return comparisons;
  throw new Refusal(
    ERRORS.SCIM_FILTER_INVALID,
    `the filter must be \`<attribute> eq "<value>"\` with one of ${attributes.join(", ")}, or several of these joined by \`and\`; got \`${text.slice(0, 200)}\``,
  );
}

/** Returns the path in lowercase and without the URN of its schema. */
export function normalizeAttributePath(path: string): string {
  return path
    .trim()
    .toLowerCase()
    .replace(/^urn:ietf:params:scim:schemas:core:2\.0:(?:user|group):/, "");
}

export interface PatchOperation {
  op: "add" | "replace" | "remove";
  /** Attribute name in lowercase, without the schema's URN. If null, `value` is an object of attributes. */
  path: string | null;
  value: JsonValue | undefined;
}

const MAX_OPERATIONS = 1000;

/** Reads the operations of a PATCH, in order. Throws USERS_SCIM_INVALID and USERS_SCIM_PATH_INVALID. */
export function readPatch(body: JsonObject): PatchOperation[] {
  const operations = findAttribute(body, "Operations");
  if (!Array.isArray(operations) || operations.length === 0 || operations.length > MAX_OPERATIONS)
    throw new Refusal(ERRORS.SCIM_INVALID, `Operations must be a list of 1 to ${MAX_OPERATIONS} operations`);
  return operations.flatMap((each) => {
    const operation = isJsonObject(each) ? assertDistinctNames(each) : {};
    const name = findAttribute(operation, "op");
    const op = typeof name === "string" ? name.toLowerCase() : "";
    if (op !== "add" && op !== "replace" && op !== "remove")
      throw new Refusal(ERRORS.SCIM_INVALID, "op must be add, replace or remove");
    const [path, value] = [findAttribute(operation, "path"), findAttribute(operation, "value")];
    if (path !== undefined && path !== null && typeof path !== "string")
      throw new Refusal(ERRORS.SCIM_PATH_INVALID, `path must be a string; got ${JSON.stringify(path).slice(0, 60)}`);
    if (typeof path === "string" && path.trim() !== "") return [{ op, path: normalizeAttributePath(path), value }];
    if (!isJsonObject(value) || op === "remove")
      throw new Refusal(
        ERRORS.SCIM_PATH_INVALID,
        `${op} without a path needs an object as value, and remove needs a path`,
      );
    return Object.entries(assertDistinctNames(value)).map(([name, part]) => ({
      op,
      path: normalizeAttributePath(name),
      value: part,
    }));
  });
}
