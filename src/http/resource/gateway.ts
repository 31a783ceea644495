/**
 * A request that a gateway asks about, as an action: what is decided must be what runs, so a request that two servers
 * could read in two ways is refused, and so is one whose body was not passed on whole.
 */
import { canonicalText } from "../../domain/canonical.ts";
import type { JsonObject, JsonValue } from "../../domain/json.ts";
import { sha256Hex, utf8 } from "../../domain/hash.ts";
import type { GateRequest } from "./gate.ts";
import { readJson, UnreadableRequest } from "./json-body.ts";

/** The original request. */
export interface GatewayRequest {
  method: string;
  host: string;
  /** Path and query, as the client wrote them. */
  uri: string;
  /** Of the question, which has the client's among them. */
  headers: Headers;
  /** Headers by which the gateway itself describes the request. It overwrites the client's. */
  gatewayHeaders: readonly string[];
  /** Null: the gateway did not pass it on. */
  body: Uint8Array | null;
  /** Its length as the client declared it; null where nothing is known. */
  declaredLength: string | null;
}

const BODYLESS = ["GET", "HEAD", "OPTIONS"];
const HOST = /^(?:[a-z0-9_-]+(?:\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i;
/**
 * Frameworks and servers take the method or the path from headers such as `X-HTTP-Method-Override`, `X-Original-URL` or
 * `Script-Name`, and would run another request than is decided. There are more of them than a list can name, so every
 * header with one of these words in its name is refused.
 */
const OVERRIDE = /(?:^|-)(?:method|ur[il]|path|prefix|script|override|rewrite|destinationurl)(?:-|$)/;
/** Have such a word in their name, and change nothing: CORS, MCP, htmx. */
const HARMLESS: readonly string[] = ["access-control-request-method", "mcp-method", "hx-current-url"];
/** What goes through a connection that stays open is decided by nobody. */
const UPGRADES = ["upgrade", "x-forwarded-upgrade", "sec-websocket-key", "http2-settings"] as const;

/** Whatever is compared of it: one request that is its own alone. Throws Unreadable. */
export function assertUnambiguous({ method, headers, gatewayHeaders }: GatewayRequest): void {
  // Some servers take "get" for GET, and others for a method of its own.
  if (!/^[A-Z]{1,20}$/.test(method)) throw new UnreadableRequest("the gateway names no method");
  const sent = namesOf(headers);
  const override = [...sent].find(
    (name) => OVERRIDE.test(name) && !HARMLESS.includes(name) && !gatewayHeaders.includes(name),
  );
  if (override !== undefined)
    throw new UnreadableRequest(`the header ${override} can make another request of this one`);
  if (method === "CONNECT" || UPGRADES.some((name) => sent.has(name)))
    throw new UnreadableRequest("a connection that stays open for another protocol cannot be decided");
}

/** Throws Unreadable. */
export function toGateRequest(seen: GatewayRequest, tool: string, agent: string): GateRequest {
  assertUnambiguous(seen);
  const { method, host, uri } = seen;
  if (host.length > 255 || !HOST.test(host)) throw new UnreadableRequest("the gateway names no host");
  // Raw bytes are read as Latin-1 or as UTF-8; some servers end the address at a "#", and the query's pair at a ";".
  if (!/^[!-~]*$/.test(uri) || uri.includes("#")) throw new UnreadableRequest("the address is not in its plain form");
  const [path = "", query = ""] = splitOnce(uri, "?");
  if (query.includes(";"))
    throw new UnreadableRequest("the query has a semicolon: servers would read it in different ways");
  const params: JsonObject = { host: host.toLowerCase(), path: plainPath(path), query: queryOf(query) };
  const body = bodyOf(seen);
  if (body !== undefined) params["body"] = body;
  return { agent_id: agent, tool, operation: method.toLowerCase(), params, meta: { via: "gateway" } };
}

/** `action_digest` of a permit for this request. Throws Unreadable. */
export function actionDigestOf(seen: GatewayRequest, tool: string, agent_id: string): string {
  const { operation, params } = toGateRequest(seen, tool, agent_id);
  return sha256Hex(utf8(canonicalText({ agent_id, operation, params, tool })));
}

/** Of headers with a value. To a server behind WSGI or CGI `X_Original_Url` is `X-Original-Url`. */
function namesOf(headers: Headers): Set<string> {
  const names = new Set<string>();
  for (const [name, value] of headers) if (value !== "") names.add(name.replaceAll("_", "-"));
  return names;
}

function splitOnce(text: string, mark: string): string[] {
  const at = text.indexOf(mark);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}

/** Servers differ in what they make of the rest: they decode once or twice, merge slashes, walk up. */
function plainPath(path: string): string {
  if (!path.startsWith("/")) throw new UnreadableRequest("the path does not begin with a slash");
  if (/\/\/|\/\.{1,2}(?:\/|$)|[\\;]|%(?:2f|5c|2e|25|3b|00)/i.test(path))
    throw new UnreadableRequest("the path is not in its plain form: servers would read it in different ways");
  const plain = decoded(path);
  // Some servers compare and store names in NFKC, where a fullwidth full stop is a full stop.
  if (marksIn(plain.normalize("NFKC")) !== marksIn(plain))
    throw new UnreadableRequest("the path holds characters that some servers read as dots or slashes");
  for (const char of plain)
    if (char < " " || char === "\u007f") throw new UnreadableRequest("the path holds control characters");
  return plain;
}

/** How many characters there are that separate or address something in a path. */
const marksIn = (path: string): number => path.match(/[./\\%;?#]/g)?.length ?? 0;

function queryOf(query: string): JsonObject {
  const values = new Map<string, JsonValue>();
  for (const pair of query === "" ? [] : query.split("&")) {
    const [name = "", value = ""] = splitOnce(pair, "=").map((part) => decoded(part.replaceAll("+", " ")));
    const earlier = values.get(name);
    values.set(name, earlier === undefined ? value : [...(Array.isArray(earlier) ? earlier : [earlier]), value]);
  }
  return Object.fromEntries(values);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new UnreadableRequest("the address is not percent-encoded UTF-8");
  }
}

function bodyOf({ method, body, headers, declaredLength }: GatewayRequest): JsonValue | undefined {
  const declared = declaredLength?.trim() ?? "";
  const more = declared !== "" && declared !== "0";
  if (body === null) {
    if (!more && BODYLESS.includes(method)) return undefined;
    throw new UnreadableRequest("the gateway did not pass the body on, and it is part of what is decided");
  }
  if (more && Number(declared) !== body.length)
    throw new UnreadableRequest("the gateway passed on a part of the body: the whole is decided");
  if (body.length === 0) return undefined;
  if (!/^(?:identity)?$/i.test(headers.get("content-encoding")?.trim() ?? ""))
    throw new UnreadableRequest("the body is encoded, and what it holds is part of what is decided");
  const [type = "", ...parameters] = (headers.get("content-type") ?? "").toLowerCase().split(/\s*;\s*/);
  if (type.includes(",")) throw new UnreadableRequest("the body has two content types");
  if (!/^application\/(?:[a-z0-9.+-]+\+)?json$/.test(type.trim()))
    return { sha256: sha256Hex(body), bytes: body.length };
  if (parameters.some((parameter) => parameter.startsWith("charset") && !/^charset="?utf-?8"?\s*$/.test(parameter)))
    throw new UnreadableRequest("the body is JSON in another charset than UTF-8");
  return readJson(body);
}
