/**
 * A request that a gateway asks about, as an action: what is decided must be what runs, so a request that two servers
 * could read in two ways is refused, and so is one whose body was not passed on whole.
 */
import { canonicalText } from "../../domain/canonical.ts";
import { decodeUtf8, parseJson, type JsonObject, type JsonValue } from "../../domain/json.ts";
import { sha256Hex, utf8 } from "../../domain/hash.ts";
import type { GateRequest } from "./gate.ts";

/** The original request. */
export interface Seen {
  method: string;
  host: string;
  /** Path and query, as the client wrote them. */
  uri: string;
  contentType: string | null;
  /** Null: the gateway did not pass it on. */
  body: Uint8Array | null;
  /** Its length as the client declared it; null where nothing is known. */
  declaredLength: string | null;
}

/** Refuses the request that is asked about. The message says why. */
export class Unreadable extends Error {}

const MAX_VALUES = 10_000;
const BODYLESS = ["GET", "HEAD", "OPTIONS"];

/** Throws Unreadable. */
export function askedAbout(seen: Seen, tool: string, agent: string): GateRequest {
  const { method, host, uri } = seen;
  if (!/^[A-Za-z]{1,20}$/.test(method)) throw new Unreadable("the gateway names no method");
  if (!/^[A-Za-z0-9._:[\]-]{1,255}$/.test(host)) throw new Unreadable("the gateway names no host");
  const [path = "", query = ""] = splitOnce(uri, "?");
  const params: JsonObject = { host: host.toLowerCase(), path: plainPath(path), query: queryOf(query) };
  const body = bodyOf(seen);
  if (body !== undefined) params["body"] = body;
  return { agent_id: agent, tool, operation: method.toLowerCase(), params, meta: { via: "gateway" } };
}

/** `action_digest` of a permit for this request. Throws Unreadable. */
export function digestOf(seen: Seen, tool: string, agent_id: string): string {
  const { operation, params } = askedAbout(seen, tool, agent_id);
  return sha256Hex(utf8(canonicalText({ agent_id, operation, params, tool })));
}

function splitOnce(text: string, mark: string): string[] {
  const at = text.indexOf(mark);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}

/** Servers differ in what they make of the rest: they decode once or twice, merge slashes, walk up. */
function plainPath(path: string): string {
  if (!path.startsWith("/") || path.includes("#")) throw new Unreadable("the path does not begin with a slash");
  if (/\/\/|\/\.{1,2}(?:\/|$)|[\\;]|%(?:2f|5c|2e|25|3b|00)/i.test(path))
    throw new Unreadable("the path is not in its plain form: servers would read it in different ways");
  const plain = decoded(path);
  for (const char of plain)
    if (char < " " || char === "\u007f") throw new Unreadable("the path holds control characters");
  return plain;
}

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
    throw new Unreadable("the address is not percent-encoded UTF-8");
  }
}

function bodyOf({ method, body, contentType, declaredLength }: Seen): JsonValue | undefined {
  const declared = declaredLength?.trim() ?? "";
  const more = declared !== "" && declared !== "0";
  if (body === null) {
    if (!more && BODYLESS.includes(method.toUpperCase())) return undefined;
    throw new Unreadable("the gateway did not pass the body on, and it is part of what is decided");
  }
  if (more && Number(declared) !== body.length)
    throw new Unreadable("the gateway passed on a part of the body: the whole is decided");
  if (body.length === 0) return undefined;
  if (!/^application\/(?:[a-z0-9.+-]+\+)?json$/i.test(contentType?.split(";")[0]?.trim() ?? ""))
    return { sha256: sha256Hex(body), bytes: body.length };
  const text = decodeUtf8(body);
  if (text === null) throw new Unreadable("the body is not UTF-8");
  try {
    return parseJson(text, { maxValues: MAX_VALUES });
  } catch (error) {
    throw new Unreadable(error instanceof Error ? error.message : "the body is not JSON");
  }
}
