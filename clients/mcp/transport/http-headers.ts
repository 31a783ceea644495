/**
 * HTTP headers of protocol revision 2026-07-28. They repeat parts of the body for intermediaries that do not parse it.
 */
import { META_KEY, isObject, readMeta, type JsonObject, type JsonValue, type Request } from "./rpc-message.ts";

/** For each method, the member of `params` that the Mcp-Name header repeats. */
const NAME_MEMBER: ReadonlyMap<string, string> = new Map([
  ["tools/call", "name"],
  ["prompts/get", "name"],
  ["resources/read", "uri"],
  ["tasks/get", "taskId"],
  ["tasks/update", "taskId"],
  ["tasks/cancel", "taskId"],
]);

/**
 * Returns how the headers contradict the body; null if they agree. They must agree, because the decision covers only
 * the body.
 */
export function headerMismatch(headers: Headers, { method, params }: Request): string | null {
  if (headers.get("mcp-protocol-version") !== readMeta(params)[META_KEY.version])
    return "MCP-Protocol-Version is missing, or differs from the body";
  if (headers.get("mcp-method") !== method) return "Mcp-Method is missing, or differs from the body";
  const member = NAME_MEMBER.get(method);
  if (member !== undefined && decodeHeader(headers.get("mcp-name")) !== params?.[member])
    return "Mcp-Name is missing, or differs from the body";
  return null;
}

/** Like `headerMismatch`, but for tool arguments that the tool's schema repeats in headers. */
export function paramHeaderMismatch(headers: Headers, schema: unknown, toolArguments: JsonObject): string | null {
  for (const { header, path } of headerParams(schema)) {
    const value = headerText(valueAt(toolArguments, path));
    const headerValue = decodeHeader(headers.get(header));
    const number = valueAt(toolArguments, path);
    const equal =
      (headerValue === value && (value !== null || headers.get(header) === null)) ||
      (typeof number === "number" && headerValue !== null && isDecimal(headerValue) && Number(headerValue) === number);
    if (!equal) return `${header} is missing, or differs from the body`;
  }
  return null;
}

/** Returns the headers that the tool's schema requires for these arguments. */
export function paramHeaders(schema: unknown, toolArguments: JsonObject): Record<string, string> {
  return Object.fromEntries(
    headerParams(schema).flatMap(({ header, path }) => {
      const value = headerText(valueAt(toolArguments, path));
      return value === null ? [] : [[header, encodeHeader(value)]];
    }),
  );
}

const HEADER_KEYWORD = "x-mcp-header";
/** Valid field names according to RFC 9110 section 5.1. */
const HEADER_NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** Maximum depth of a schema. */
const MAX_DEPTH = 32;

/** Returns the arguments that the schema marks for headers, with their paths. */
function headerParams(schema: unknown, path: string[] = []): { header: string; path: string[] }[] {
  if (!isObject(schema) || path.length > MAX_DEPTH) return [];
  const { [HEADER_KEYWORD]: name, properties } = schema;
  const ownParam =
    typeof name === "string" && HEADER_NAME.test(name) && path.length > 0
      ? [{ header: `Mcp-Param-${name}`, path }]
      : [];
  const nestedParams = isObject(properties)
    ? Object.entries(properties).flatMap(([key, member]) => headerParams(member, [...path, key]))
    : [];
  return [...ownParam, ...nestedParams];
}

/** Types of members that a header can repeat. */
const MEMBER_TYPES: ReadonlySet<JsonValue | undefined> = new Set(["string", "integer", "boolean"]);

/**
 * Returns why the `x-mcp-header` annotations of a tool's schema are invalid; null if they are valid. Clients must not use
 * a tool with invalid annotations.
 */
export function headerAnnotationFault(schema: unknown): string | null {
  const names = new Set<string>();
  /** @param path path of the member that `value` describes; null if it does not describe exactly one member */
  const visit = (value: unknown, path: string[] | null, depth: number): string | null => {
    if (Array.isArray(value)) return firstFault(value.map((each) => () => visit(each, null, depth + 1)));
    if (!isObject(value)) return null;
    if (depth > MAX_DEPTH * 2) return "the schema is nested too deeply";
    const { [HEADER_KEYWORD]: name, properties, ...others } = value;
    if (HEADER_KEYWORD in value) {
      if (path === null || path.length === 0) return "it annotates something that is not one member of the arguments";
      if (typeof name !== "string" || !HEADER_NAME.test(name))
        return `${JSON.stringify(name)} is not the name of a header`;
      if (!MEMBER_TYPES.has(value["type"]))
        return `"${name}" annotates a member that is not a string, integer or boolean`;
      if (names.has(name.toLowerCase())) return `"${name}" is used twice`;
      names.add(name.toLowerCase());
    }
    return firstFault([
      ...Object.entries(isObject(properties) ? properties : {}).map(
        ([key, member]) =>
          () =>
            visit(member, path === null ? null : [...path, key], depth + 1),
      ),
      // Values of these keywords are data, not schemas.
      ...Object.entries(others)
        .filter(([key]) => !DATA_KEYWORDS.has(key))
        .map(
          ([key, member]) =>
            () =>
              MAP_KEYWORDS.has(key) && isObject(member)
                ? visit(Object.values(member), null, depth + 1)
                : visit(member, null, depth + 1),
        ),
    ]);
  };
  return visit(schema, [], 0);
}

const DATA_KEYWORDS = new Set(["default", "const", "enum", "examples"]);
/** Keywords whose value maps names to schemas, so that a name such as `x-mcp-header` is not an annotation. */
const MAP_KEYWORDS = new Set(["$defs", "definitions", "patternProperties", "dependentSchemas"]);

function firstFault(checks: (() => string | null)[]): string | null {
  for (const check of checks) {
    const fault = check();
    if (fault !== null) return fault;
  }
  return null;
}

function valueAt(toolArguments: JsonObject, path: readonly string[]): JsonValue | undefined {
  let value: JsonValue | undefined = toolArguments;
  for (const key of path) value = isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
  return value;
}

/** Returns a value as the text of a header; null for a type that a header cannot contain. */
function headerText(value: JsonValue | undefined): string | null {
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean" ? String(value) : null;
}

const isDecimal = (text: string): boolean => /^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(text);

/** Encodes a value as `=?base64?…?=` if it is not plain ASCII, or if a parser would change it. */
function encodeHeader(value: string): string {
  return /^[!-~](?:[\t -~]*[!-~])?$/.test(value) && !/^=\?base64\?.*\?=$/.test(value)
    ? value
    : `=?base64?${Buffer.from(value, "utf8").toString("base64")}?=`;
}

/** Returns null for base64 with invalid characters or padding, so that it equals no value. */
function decodeHeader(value: string | null): string | null {
  const [, base64] = /^=\?base64\?(.*)\?=$/.exec(value?.trim() ?? "") ?? [];
  if (base64 === undefined) return value?.trim() ?? null;
  const bytes = Buffer.from(base64, "base64");
  return bytes.toString("base64") === base64 ? bytes.toString("utf8") : null;
}
