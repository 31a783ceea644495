/**
 * Turns an HTTP request, which a gateway or the egress proxy is about to forward, into an action. The upstream must run
 * exactly the request that was decided. Therefore refuses requests with an incomplete body, and requests that two servers could interpret
 * differently.
 */
import type { JsonObject, JsonValue } from "./json.ts";
import { sha256Hex } from "./hash.ts";
import { hasHiddenCharacters } from "./text.ts";
import { readJson, UnreadableRequest } from "./json-body.ts";

/**
 * The action that represents an HTTP request. Gateways and the egress proxy submit equal actions, so that they can
 * share policies.
 */
export interface HttpAction {
  agent_id: string;
  tool: string;
  operation: string;
  params: JsonObject;
  meta: JsonObject;
}

/** The original request. */
export interface GatewayRequest {
  method: string;
  host: string;
  /** Path and query, as the client sent them. */
  uri: string;
  /** Headers of the gateway's request, which include the client's headers. */
  headers: Headers;
  /** Names of headers that the gateway sets itself, instead of the client's values. */
  gatewayHeaders: readonly string[];
  /** The body; null if the gateway did not forward it. */
  body: Uint8Array | null;
  /** Content-Length that the client sent, or null if unknown. */
  declaredLength: string | null;
}

const BODYLESS = ["GET", "HEAD", "OPTIONS"];
const HOST = /^(?:[a-z0-9_-]+(?:\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\])(?::[1-9]\d{0,4})?$/i;
/**
 * Some frameworks and servers override the method or path with headers such as `X-HTTP-Method-Override`,
 * `X-Original-URL` or `Script-Name`, and would run a request that differs from the decided request. No list of such
 * headers can be complete, so every header with one of these words in its name is refused.
 */
const OVERRIDE = /(?:^|-)(?:method|ur[il]|path|prefix|script|override|rewrite|destinationurl)(?:-|$)/;
/** Headers of CORS, MCP and htmx that match `OVERRIDE` but change neither the method nor the path. */
const HARMLESS: readonly string[] = ["access-control-request-method", "mcp-method", "hx-current-url"];
/** Headers that upgrade the connection. Later messages on the connection would not need a decision. */
const UPGRADES = ["upgrade", "x-forwarded-upgrade", "sec-websocket-key", "http2-settings"] as const;

/** Throws UnreadableRequest if servers could interpret the request differently. */
export function assertUnambiguous({ method, headers, gatewayHeaders }: GatewayRequest): void {
  // Some servers treat "get" as GET, and others as a different method.
  if (!/^[A-Z]{1,20}$/.test(method)) throw new UnreadableRequest("the gateway did not send a valid method");
  const sent = namesOf(headers);
  const override = [...sent].find(
    (name) => OVERRIDE.test(name) && !HARMLESS.includes(name) && !gatewayHeaders.includes(name),
  );
  if (override !== undefined)
    throw new UnreadableRequest(`the header ${override} can override the method or path of the request`);
  if (method === "CONNECT" || UPGRADES.some((name) => sent.has(name)))
    throw new UnreadableRequest("a request that upgrades the connection to another protocol cannot be decided");
}

/** Returns the action for the request. Throws UnreadableRequest. */
export function toHttpAction(original: GatewayRequest, tool: string, agent: string): HttpAction {
  assertUnambiguous(original);
  const { method, host, uri } = original;
  if (host.length > 255 || !HOST.test(host)) throw new UnreadableRequest("the gateway did not send a valid host");
  // Some servers decode raw bytes as Latin-1, and others as UTF-8. Some end the URL at "#", and query parameters at
  // ";".
  if (!/^[!-~]*$/.test(uri) || uri.includes("#")) throw new UnreadableRequest("the URL contains unencoded characters");
  const [path = "", query = ""] = splitOnce(uri, "?");
  if (query.includes(";"))
    throw new UnreadableRequest("the query contains a semicolon, which servers interpret differently");
  const params: JsonObject = { host: plainHost(host), path: plainPath(path), query: queryOf(query) };
  const body = bodyOf(original);
  if (body !== undefined) {
    params["body"] = body;
    // The type can change the meaning of the same bytes: a JSON merge patch is not a strategic merge patch.
    const type = original.headers.get("content-type")?.trim() ?? "";
    if (!/^application\/json\s*(?:;|$)/i.test(type)) params["content_type"] = type;
  }
  return { agent_id: agent, tool, operation: method.toLowerCase(), params, meta: { via: "gateway" } };
}

/**
 * Returns the names of all headers that have a value. Replaces `_` with `-`, because WSGI and CGI treat
 * `X_Original_Url` as `X-Original-Url`.
 */
function namesOf(headers: Headers): Set<string> {
  const names = new Set<string>();
  for (const [name, value] of headers) if (value !== "") names.add(name.replaceAll("_", "-"));
  return names;
}

function splitOnce(text: string, mark: string): string[] {
  const at = text.indexOf(mark);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}

/**
 * IPv6 addresses that contain an IPv4 address: `::a.b.c.d`, `::ffff:0:a.b.c.d` (RFC 2765), NAT64 (RFC 6052, RFC 8215),
 * 6to4 (RFC 3056), Teredo (RFC 4380) and ISATAP (RFC 5214). A rule for the IPv4 address does not cover them. `::` and
 * `::1` are addresses of their own.
 */
const TRANSLATED =
  /^\[(?:::(?:ffff:0:)?[\da-f]+:[\da-f]+|::(?!1?\])[\da-f]*|::ffff:0:[\da-f]*|64:ff9b:[\da-f:]*|2002:[\da-f:]*|2001:(?::|0:)[\da-f:]*|[\da-f:]*:5efe:[\da-f]+:[\da-f]+)\]/;

/**
 * Returns the host in lowercase, without a default port and with an address in its usual form, so that a rule for a
 * host covers all its spellings. Throws UnreadableRequest for a host that is not valid in a URL.
 */
function plainHost(host: string): string {
  if (!URL.canParse(`http://${host}`)) throw new UnreadableRequest("the gateway did not send a valid host");
  const plain = new URL(`http://${host}`).host.replace(/:443$/, "");
  if (TRANSLATED.test(plain))
    throw new UnreadableRequest("the host is an IPv6 address that a network can translate to an IPv4 address");
  // An IPv4-mapped IPv6 address (RFC 4291, section 2.5.5.2).
  return plain.replace(/^\[::ffff:([\da-f]{1,4}):([\da-f]{1,4})\]/, (_, high: string, low: string) =>
    [high, low].flatMap((part) => [parseInt(part, 16) >> 8, parseInt(part, 16) & 255]).join("."),
  );
}

/**
 * Decodes a path. Throws UnreadableRequest for paths that servers interpret differently, because some decode twice,
 * merge slashes, resolve dot segments, or ignore dots and spaces at the end of a segment.
 */
function plainPath(path: string): string {
  if (!path.startsWith("/")) throw new UnreadableRequest("the path does not begin with a slash");
  if (/\/\/|\/\.{1,2}(?:\/|$)|[\\;]|%(?:2f|5c|2e|25|3b|3f|23|00)/i.test(path))
    throw new UnreadableRequest(
      "the path contains encoded or repeated separators, which servers interpret differently",
    );
  const plain = decoded(path);
  // Some servers normalize names to NFKC, which turns a fullwidth full stop into a normal full stop.
  if (countSpecialCharacters(plain.normalize("NFKC")) !== countSpecialCharacters(plain) || SLASH_LIKE.test(plain))
    throw new UnreadableRequest("the path contains characters that some servers treat as dots or slashes");
  if (hasHiddenCharacters(plain.replaceAll(/\p{Zs}/gu, "")))
    throw new UnreadableRequest(
      "the path contains control characters or invisible characters, which some servers ignore",
    );
  if (/[.\p{Z}](?:\/|$)/u.test(plain))
    throw new UnreadableRequest("a segment of the path ends with a dot or a space, which some servers ignore");
  return plain;
}

/** Characters that Windows code pages map to a slash or a backslash. */
const SLASH_LIKE = /[\u2044\u2215\u2216\u29f5\u29f8\u00a5\u20a9]/;

/** Returns the number of characters in a path that servers can interpret as separators, dots or escapes. */
const countSpecialCharacters = (path: string): number => path.match(/[./\\%;?#]/g)?.length ?? 0;

/** Maximum depth of a query parameter. Servers read at most 5 (qs), 32 (Rack) or 64 levels (PHP), each in its own way. */
const MAX_QUERY_DEPTH = 32;

function queryOf(query: string): JsonObject {
  const values = new Map<string, JsonValue>();
  const spellings = new Map<string, string>();
  for (const pair of query === "" ? [] : query.split("&")) {
    const [name = "", value = ""] = splitOnce(pair, "=").map((part) => decoded(part.replaceAll("+", " ")));
    if (/^\p{Z}|\p{Cc}/u.test(name))
      throw new UnreadableRequest("the name of a query parameter begins with a space or contains a control character");
    const read = readName(name);
    if ((spellings.get(read) ?? name) !== name)
      throw new UnreadableRequest(
        "the query has two parameters whose names some servers treat as one, because they differ in case or punctuation",
      );
    spellings.set(read, name);
    if (value.includes("\0")) throw new UnreadableRequest("a query parameter contains a null character");
    const earlier = values.get(name);
    values.set(name, earlier === undefined ? value : [...(Array.isArray(earlier) ? earlier : [earlier]), value]);
  }
  for (const name of values.keys()) {
    const outer = [...name.matchAll(/\[/g)].map(({ index }) => name.slice(0, index));
    if (outer.length > MAX_QUERY_DEPTH)
      throw new UnreadableRequest(`the query has a parameter with more than ${MAX_QUERY_DEPTH} levels`);
    // Some servers give `[]` the next number, so that `x[]` and `x[0]` are the same member.
    const numberless = [...name.matchAll(/\[(\d+)\]/g)].map(
      ({ 0: member, index }) => `${name.slice(0, index)}[]${name.slice(index + member.length)}`,
    );
    if ([...outer, ...numberless].some((each) => spellings.has(readName(each))))
      throw new UnreadableRequest("the query has a parameter and a member of it, which some servers treat as one");
  }
  return Object.fromEntries(values);
}

/**
 * Returns the same name for all names that some server treats as one. ASP.NET ignores case. PHP replaces dots, spaces and
 * `[`, and ignores text between a `]` and the next `[`.
 */
const readName = (name: string): string =>
  name
    .replaceAll(/\][^[]*(?=\[|$)/g, "]")
    .replaceAll(/\[\s+\]/g, "[]")
    .toLowerCase()
    .replace(/[ .[]/g, "_");

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new UnreadableRequest("the URL is not percent-encoded UTF-8");
  }
}

function bodyOf({ method, body, headers, declaredLength }: GatewayRequest): JsonValue | undefined {
  const declared = declaredLength?.trim() ?? "";
  const declaresBody = declared !== "" && declared !== "0";
  if (body === null) {
    if (!declaresBody && BODYLESS.includes(method)) return undefined;
    throw new UnreadableRequest("the gateway did not forward the body, which is part of the decision");
  }
  if (declaresBody && Number(declared) !== body.length)
    throw new UnreadableRequest("the gateway forwarded only a part of the body, but the decision needs all of it");
  if (body.length === 0) return undefined;
  if (!/^(?:identity)?$/i.test(headers.get("content-encoding")?.trim() ?? ""))
    throw new UnreadableRequest("the body is compressed, so its content cannot be part of the decision");
  const header = (headers.get("content-type") ?? "").toLowerCase();
  const [type = "", ...parameters] = header.split(/\s*;\s*/);
  const isJson = /^application\/(?:[a-z0-9.+-]+\+)?json$/.test(type.trim());
  // `Headers` joins two headers with a comma. The first can end with a parameter, such as `application/json; a=b`.
  if (type.includes(",") || (isJson && header.includes(",")))
    throw new UnreadableRequest("the body has two content types");
  if (!isJson) return { sha256: sha256Hex(body), bytes: body.length };
  if (parameters.some((parameter) => parameter.startsWith("charset") && !/^charset="?utf-?8"?\s*$/.test(parameter)))
    throw new UnreadableRequest("the body is JSON in another charset than UTF-8");
  return readJson(body);
}
