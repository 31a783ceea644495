/** Headers of 2026-07-28, which repeat what is in the body for those on the way that do not read it. */
import { META, isObject, metaOf, type JsonObject, type JsonValue, type Request } from "./message.ts";

/** Where the name that is in the headers stands in the body. */
const NAMED: Readonly<Record<string, string>> = {
  "tools/call": "name",
  "prompts/get": "name",
  "resources/read": "uri",
};

/** What the headers say must be what the body says: that is what is decided. Null when it is. */
export function headerFault(headers: Headers, { method, params }: Request): string | null {
  if (headers.get("mcp-protocol-version") !== metaOf(params)[META.version])
    return "MCP-Protocol-Version is missing, or differs from the body";
  if (headers.get("mcp-method") !== method) return "Mcp-Method is missing, or differs from the body";
  const member = NAMED[method];
  if (member !== undefined && decoded(headers.get("mcp-name")) !== params?.[member])
    return "Mcp-Name is missing, or differs from the body";
  return null;
}

/** The same of the arguments that a tool's schema wants in headers. */
export function paramFault(headers: Headers, schema: unknown, given: JsonObject): string | null {
  for (const { header, path } of declared(schema)) {
    const value = textOf(at(given, path));
    const said = decoded(headers.get(header));
    const number = at(given, path);
    const equal =
      said === value || (typeof number === "number" && said !== null && isDecimal(said) && Number(said) === number);
    if (!equal) return `${header} is missing, or differs from the body`;
  }
  return null;
}

/** Headers of a call to a server whose tool wants them. */
export function paramHeaders(schema: unknown, given: JsonObject): Record<string, string> {
  return Object.fromEntries(
    declared(schema).flatMap(({ header, path }) => {
      const value = textOf(at(given, path));
      return value === null ? [] : [[header, encoded(value)]];
    }),
  );
}

const KEY = "x-mcp-header";
/** A field name of RFC 9110 section 5.1. */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** Deeper than any schema that somebody writes. */
const DEEPEST = 32;

/** Members of the arguments that stand in headers: what a chain of `properties` leads to. */
function declared(schema: unknown, path: string[] = []): { header: string; path: string[] }[] {
  if (!isObject(schema) || path.length > DEEPEST) return [];
  const { [KEY]: name, properties } = schema;
  const own =
    typeof name === "string" && TOKEN.test(name) && path.length > 0 ? [{ header: `Mcp-Param-${name}`, path }] : [];
  const inner = isObject(properties)
    ? Object.entries(properties).flatMap(([key, member]) => declared(member, [...path, key]))
    : [];
  return [...own, ...inner];
}

function at(given: JsonObject, path: readonly string[]): JsonValue | undefined {
  let value: JsonValue | undefined = given;
  for (const key of path) value = isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
  return value;
}

/** Null for what does not go into a header. */
function textOf(value: JsonValue | undefined): string | null {
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean" ? String(value) : null;
}

const isDecimal = (text: string): boolean => /^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(text);

/** A value that ASCII cannot write, or that a reader would change, stands as `=?base64?…?=`. */
function encoded(value: string): string {
  return /^[!-~](?:[\t -~]*[!-~])?$/.test(value) && !/^=\?base64\?.*\?=$/.test(value)
    ? value
    : `=?base64?${Buffer.from(value, "utf8").toString("base64")}?=`;
}

function decoded(value: string | null): string | null {
  const [, base64] = /^=\?base64\?(.*)\?=$/.exec(value?.trim() ?? "") ?? [];
  return base64 === undefined ? (value?.trim() ?? null) : Buffer.from(base64, "base64").toString("utf8");
}
