/** Swaps placeholders for credentials in a request, and removes credentials from a response. */
import { Transform } from "node:stream";
import { decodeUtf8, isJsonObject, parseJson } from "../../src/domain/json.ts";
import { Refusal } from "./refusal.ts";

export interface Credential {
  /** Where the placeholder is swapped. Names of headers are in lowercase. */
  place: "header" | "query" | "body";
  name: string;
  placeholder: string;
  secret: string;
}

export interface PlainRequest {
  headers: [name: string, value: string][];
  /** Path and query. */
  uri: string;
  body: Buffer;
}

/**
 * Returns the request with credentials in the places of their placeholders, and nowhere else. Throws Refusal if a place
 * contains another value, because the agent could then act as another account, which receives what it sends.
 */
export function swapCredentials(credentials: readonly Credential[], request: PlainRequest): PlainRequest {
  let { headers, uri, body } = request;
  const type = headers.find(([name]) => name === "content-type")?.[1] ?? "";
  for (const credential of credentials) {
    const { place, name } = credential;
    if (place === "header") {
      const read = headers.filter(([each]) => each.replaceAll("_", "-") === name.replaceAll("_", "-"));
      if (read.length > 1 || (read[0] !== undefined && read[0][0] !== name)) throw missing(credential, "once");
      headers = headers.map(([each, value]) => [each, each === name ? swapHeader(credential, value) : value]);
    } else if (place === "query") {
      const at = uri.indexOf("?");
      if (at >= 0) uri = `${uri.slice(0, at + 1)}${swapPairs(credential, uri.slice(at + 1))}`;
    } else if (body.length > 0) body = swapBody(credential, body, type);
  }
  return { headers, uri, body };
}

function missing({ place, name, placeholder }: Credential, how = "as its value"): Refusal {
  return new Refusal(
    `the ${place === "query" ? "query parameter" : place === "body" ? "member of the body" : "header"} ${name} must contain the placeholder ${placeholder} ${how}; the proxy forwards no other credential`,
    { status: 403, code: "PLACEHOLDER_MISSING" },
  );
}

/** Swaps `PLACEHOLDER`, `Bearer PLACEHOLDER`, and the password of `Basic …`. */
function swapHeader(credential: Credential, value: string): string {
  const { placeholder, secret } = credential;
  const [, scheme = "", rest = ""] = /^([A-Za-z][A-Za-z0-9-]* +)?(\S+)$/.exec(value) ?? [];
  if (rest === placeholder) return `${scheme}${secret}`;
  if (scheme.trim().toLowerCase() !== "basic" || !/^[A-Za-z0-9+/]+=*$/.test(rest)) throw missing(credential);
  const decoded = Buffer.from(rest, "base64").toString("latin1");
  const at = decoded.indexOf(":");
  const [user, password] = [decoded.slice(0, at), decoded.slice(at + 1)];
  if (at < 0 || ![user, password].includes(placeholder)) throw missing(credential, "as the user or the password");
  const swapped = [user, password].map((part) => (part === placeholder ? secret : part)).join(":");
  return `${scheme}${Buffer.from(swapped, "latin1").toString("base64")}`;
}

/** Swaps the value of a parameter in a query or a form. */
function swapPairs(credential: Credential, text: string): string {
  const { name, placeholder, secret } = credential;
  let swapped = 0;
  const pairs = text.split("&").map((pair) => {
    const at = pair.indexOf("=");
    const [key, value] = at < 0 ? [pair, ""] : [pair.slice(0, at), pair.slice(at + 1)];
    if (decodePart(key) !== name) return pair;
    if (decodePart(value) !== placeholder || ++swapped > 1) throw missing(credential);
    return `${key}=${encodeURIComponent(secret)}`;
  });
  return pairs.join("&");
}

function decodePart(text: string): string | null {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return null;
  }
}

function swapBody(credential: Credential, body: Buffer, type: string): Buffer {
  const { name, placeholder, secret } = credential;
  const [plain = ""] = type.toLowerCase().split(/\s*;/);
  if (plain === "application/x-www-form-urlencoded")
    return Buffer.from(swapPairs(credential, body.toString("latin1")), "latin1");
  if (!/^application\/(?:[a-z0-9.+-]+\+)?json$/.test(plain)) return body;
  // The same parser as for the decision, which has accepted this body.
  const value = parseJson(decodeUtf8(body) ?? "");
  if (!isJsonObject(value) || !Object.hasOwn(value, name)) return body;
  if (value[name] !== placeholder) throw missing(credential);
  return Buffer.from(JSON.stringify({ ...value, [name]: secret }));
}

/** Removes credentials from a response. Keeps the length of texts, so that Content-Length stays valid. */
export class Redactor {
  private readonly spellings: readonly Buffer[];

  constructor(credentials: readonly Credential[]) {
    this.spellings = [...new Set(credentials.flatMap(({ secret }) => spellingsOf(secret)))]
      .sort((a, b) => b.length - a.length)
      .map((text) => Buffer.from(text, "latin1"));
  }

  redactText(text: string): string {
    return this.redact(Buffer.from(text, "latin1")).toString("latin1");
  }

  private redact(bytes: Buffer): Buffer {
    for (const spelling of this.spellings)
      for (let at = bytes.indexOf(spelling); at >= 0; at = bytes.indexOf(spelling, at))
        bytes.fill("*", at, at + spelling.length);
    return bytes;
  }

  /** Returns a stream that redacts. Delays only bytes with which a credential could begin. */
  stream(): Transform {
    let held: Buffer = Buffer.alloc(0);
    return new Transform({
      transform: (chunk: Buffer, _encoding, done) => {
        const bytes = this.redact(Buffer.concat([held, chunk]));
        const keep = this.countPossibleStart(bytes);
        held = bytes.subarray(bytes.length - keep);
        done(null, bytes.subarray(0, bytes.length - keep));
      },
      flush: (done) => done(null, held),
    });
  }

  /** Returns the length of the longest end of `bytes` with which a spelling begins. */
  private countPossibleStart(bytes: Buffer): number {
    let longest = 0;
    for (const spelling of this.spellings)
      for (let length = Math.min(spelling.length - 1, bytes.length); length > longest; length--)
        if (bytes.compare(spelling, 0, length, bytes.length - length) === 0) longest = length;
    return longest;
  }
}

/** Returns the usual spellings of a text: plain, in JSON, percent-encoded, in hex, and in Base64 at each offset. */
function spellingsOf(secret: string): string[] {
  const bytes = Buffer.from(secret, "latin1");
  const json = JSON.stringify(secret).slice(1, -1);
  const percent = encodeURIComponent(secret);
  const base64 = [0, 1, 2].map((offset) => {
    const text = Buffer.concat([Buffer.alloc(offset), bytes]).toString("base64");
    // Only the characters that depend on nothing before or after the secret.
    return text.slice(Math.ceil((offset * 8) / 6), Math.floor(((offset + bytes.length) * 8) / 6));
  });
  return [
    secret,
    json,
    json.replaceAll("/", "\\/"),
    percent,
    percent.replaceAll(/%../g, (escape) => escape.toLowerCase()),
    bytes.toString("hex"),
    bytes.toString("hex").toUpperCase(),
    ...base64,
    ...base64.map((text) => text.replaceAll("+", "-").replaceAll("/", "_")),
  ];
}
