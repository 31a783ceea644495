/** Headers of 2026-07-28, which repeat what is in the body for those on the way that do not read it. */
import { META_KEY, isObject, readMeta, type JsonObject, type JsonValue, type Request } from "./message.ts";

/** Where the name that is in the headers stands in the body. */
const NAME_MEMBER: Readonly<Record<string, string>> = {
  "tools/call": "name",
  "prompts/get": "name",
  "resources/read": "uri",
};

/** What the headers say must be what the body says: that is what is decided. Null when it is. */
export function headerMismatch(headers: Headers, { method, params }: Request): string | null {
  if (headers.get("mcp-protocol-version") !== readMeta(params)[META_KEY.version])
    return "MCP-Protocol-Version is missing, or differs from the body";
  if (headers.get("mcp-method") !== method) return "Mcp-Method is missing, or differs from the body";
  const member = NAME_MEMBER[method];
  if (member !== undefined && decodeHeader(headers.get("mcp-name")) !== params?.[member])
    return "Mcp-Name is missing, or differs from the body";
  return null;
}

/** The same of the arguments that a tool's schema wants in headers. */
export function paramHeaderMismatch(headers: Headers, schema: unknown, given: JsonObject): string | null {
  for (const { header, path } of headerParams(schema)) {
    const value = headerText(valueAt(given, path));
    const said = decodeHeader(headers.get(header));
    const number = valueAt(given, path);
    const equal =
      said === value || (typeof number === "number" && said !== null && isDecimal(said) && Number(said) === number);
    if (!equal) return `${header} is missing, or differs from the body`;
  }
  return null;
}

/** Headers of a call to a server whose tool wants them. */
export function paramHeaders(schema: unknown, given: JsonObject): Record<string, string> {
  return Object.fromEntries(
    headerParams(schema).flatMap(({ header, path }) => {
      const value = headerText(valueAt(given, path));
      return value === null ? [] : [[header, encodeHeader(value)]];
    }),
  );
}

const HEADER_KEYWORD = "x-mcp-header";
/** A field name of RFC 9110 section 5.1. */
const HEADER_NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** Deeper than any schema that somebody writes. */
const MAX_DEPTH = 32;

/** Members of the arguments that stand in headers: what a chain of `properties` leads to. */
function headerParams(schema: unknown, path: string[] = []): { header: string; path: string[] }[] {
  if (!isObject(schema) || path.length > MAX_DEPTH) return [];
  const { [HEADER_KEYWORD]: name, properties } = schema;
  const own =
    typeof name === "string" && HEADER_NAME.test(name) && path.length > 0
      ? [{ header: `Mcp-Param-${name}`, path }]
      : [];
  const inner = isObject(properties)
    ? Object.entries(properties).flatMap(([key, member]) => headerParams(member, [...path, key]))
    : [];
  return [...own, ...inner];
}

function valueAt(given: JsonObject, path: readonly string[]): JsonValue | undefined {
  let value: JsonValue | undefined = given;
  for (const key of path) value = isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
  return value;
}

/** Null for what does not go into a header. */
function headerText(value: JsonValue | undefined): string | null {
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean" ? String(value) : null;
}

const isDecimal = (text: string): boolean => /^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(text);

/** A value that ASCII cannot write, or that a reader would change, stands as `=?base64?…?=`. */
function encodeHeader(value: string): string {
  return /^[!-~](?:[\t -~]*[!-~])?$/.test(value) && !/^=\?base64\?.*\?=$/.test(value)
    ? value
    : `=?base64?${Buffer.from(value, "utf8").toString("base64")}?=`;
}

function decodeHeader(value: string | null): string | null {
  const [, base64] = /^=\?base64\?(.*)\?=$/.exec(value?.trim() ?? "") ?? [];
  return base64 === undefined ? (value?.trim() ?? null) : Buffer.from(base64, "base64").toString("utf8");
}
