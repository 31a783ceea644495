/** Swaps placeholders for credentials in a request, and removes credentials from a response. */
import { Transform } from "node:stream";
import { decodeUtf8, isJsonObject, parseJson } from "../../src/domain/json.ts";
import { Refusal, unreadableRefusal } from "./refusal.ts";

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
 * Returns the request with credentials in place of their placeholders. Changes nothing else. Throws Refusal if the
 * position of a credential has another value: the agent could then act as another account, which would receive what it
 * sends.
 */
export function swapCredentials(credentials: readonly Credential[], request: PlainRequest): PlainRequest {
  let { headers, uri, body } = request;
  const type = headers.find(([name]) => name === "content-type")?.[1] ?? "";
  for (const credential of credentials) {
    const { place, name } = credential;
    if (place === "header") {
      const read = headers.filter(([each]) => each.replaceAll("_", "-") === name.replaceAll("_", "-"));
      if (read.length > 1 || (read[0] !== undefined && read[0][0] !== name)) throw missingRefusal(credential, "once");
      headers = headers.map(([each, value]) => [each, each === name ? swapHeader(credential, value) : value]);
    } else if (place === "query") {
      const at = uri.indexOf("?");
      if (at >= 0) uri = `${uri.slice(0, at + 1)}${swapPairs(credential, uri.slice(at + 1))}`;
    } else if (body.length > 0) body = swapBody(credential, body, type);
  }
  return { headers, uri, body };
}

function missingRefusal({ place, name, placeholder }: Credential, options = "as its value"): Refusal {
  return new Refusal(
    `the ${place === "query" ? "query parameter" : place === "body" ? "member of the body" : "header"} ${name} must contain the placeholder ${placeholder} ${options}; the proxy forwards no other credential`,
    { status: 403, code: "PLACEHOLDER_MISSING" },
  );
}

/** Swaps `PLACEHOLDER`, `Bearer PLACEHOLDER`, and the password of `Basic …`. */
function swapHeader(credential: Credential, value: string): string {
  const { placeholder, secret } = credential;
  const [, scheme = "", rest = ""] = /^([A-Za-z][A-Za-z0-9-]* +)?(\S+)$/.exec(value) ?? [];
  if (rest === placeholder) return `${scheme}${secret}`;
  if (scheme.trim().toLowerCase() !== "basic" || !/^[A-Za-z0-9+/]+=*$/.test(rest)) throw missingRefusal(credential);
  const decoded = Buffer.from(rest, "base64").toString("latin1");
  const at = decoded.indexOf(":");
  const [user, password] = [decoded.slice(0, at), decoded.slice(at + 1)];
  if (at < 0 || ![user, password].includes(placeholder))
    throw missingRefusal(credential, "as the user or the password");
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
    const given = decodePart(key);
    if (given !== name) {
      assertOtherName(credential, given ?? key);
      return pair;
    }
    if (decodePart(value) !== placeholder || ++swapped > 1) throw missingRefusal(credential);
    return `${key}=${encodeURIComponent(secret)}`;
  });
  return pairs.join("&");
}

/**
 * Throws Refusal if servers could read another name as that of the credential. Its value would then be the agent's own.
 */
function assertOtherName(credential: Credential, otherName: string): void {
  const isSame = [otherName, otherName.replace(/\[.*$/s, "")].some(
    (each) => readName(each) === readName(credential.name),
  );
  if (isSame) throw missingRefusal(credential);
}

/** Go and ASP.NET ignore case. PHP replaces dots, spaces and `[`, and removes spaces in front. */
const readName = (name: string): string => name.trimStart().toLowerCase().replace(/[ .[]/g, "_");

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
  if (plain === "application/x-www-form-urlencoded") {
    const text = body.toString("latin1");
    if (text.includes(";"))
      throw unreadableRefusal("the form contains a semicolon, which servers interpret differently");
    return Buffer.from(swapPairs(credential, text), "latin1");
  }
  // In another body, such as multipart/form-data, another credential would pass unseen.
  if (!/^application\/(?:[a-z0-9.+-]+\+)?json$/.test(plain))
    throw unreadableRefusal(
      `a credential of this host is in the body, so the body must be JSON or a form; got "${plain}"`,
    );
  // The same parser as for the decision, which has accepted this body.
  const value = parseJson(decodeUtf8(body) ?? "");
  if (!isJsonObject(value)) return body;
  for (const given of Object.keys(value)) if (given !== name) assertOtherName(credential, given);
  if (!Object.hasOwn(value, name)) return body;
  if (value[name] !== placeholder) throw missingRefusal(credential);
  return Buffer.from(JSON.stringify({ ...value, [name]: secret }));
}

/** Removes credentials from a response. Keeps the length of texts, so that Content-Length stays valid. */
export class Redactor {
  private readonly patterns: readonly Pattern[];

  constructor(secrets: readonly string[]) {
    this.patterns = [...new Set(secrets)].flatMap(patternsOf);
  }

  redactText(text: string): string {
    return this.redact(Buffer.from(text, "latin1"), true).done.toString("latin1");
  }

  finds(text: string): boolean {
    const bytes = Buffer.from(text);
    return !this.redact(Buffer.from(bytes), true).done.equals(bytes);
  }

  /** Returns a stream that redacts. Delays only bytes with which a credential could begin. */
  stream(): Transform {
    let held: Buffer = Buffer.alloc(0);
    return new Transform({
      transform: (chunk: Buffer, _encoding, done) => {
        const read = this.redact(Buffer.concat([held, chunk]), false);
        held = read.rest;
        done(null, read.done);
      },
      flush: (done) => done(null, this.redact(held, true).done),
    });
  }

  /** Redacts in place. `rest` begins where a credential could continue in the next chunk; it is empty at the end. */
  private redact(bytes: Buffer, isEnd: boolean): { done: Buffer; rest: Buffer } {
    for (let at = 0; at < bytes.length;) {
      let end = 0;
      for (const pattern of this.patterns) {
        if (!pattern.starts.has(bytes[at] as number)) continue;
        const found = findEnd(bytes, at, pattern);
        if (found === "open" && !isEnd) return { done: bytes.subarray(0, at), rest: bytes.subarray(at) };
        if (typeof found === "number" && found > end) end = found;
      }
      if (end > 0) bytes.fill("*", at, end);
      at = Math.max(end, at + 1);
    }
    return { done: bytes, rest: Buffer.alloc(0) };
  }
}

/** A credential in one encoding, with all spellings of each of its characters. */
interface Pattern {
  starts: ReadonlySet<number>;
  characters: readonly (readonly Buffer[])[];
}

/**
 * Matches a credential at `start`. Returns its end; "open" if the bytes end before the credential does; null if there
 * is no match.
 */
function findEnd(bytes: Buffer, start: number, { characters }: Pattern): number | "open" | null {
  let ends = [start];
  let isOpen = false;
  for (const spellings of characters) {
    const next: number[] = [];
    for (const at of ends)
      for (const spelling of spellings) {
        let same = 0;
        while (same < spelling.length && at + same < bytes.length && bytes[at + same] === spelling[same]) same++;
        if (same === spelling.length) next.push(at + same);
        else if (at + same === bytes.length) isOpen = true;
      }
    if (next.length === 0) return isOpen ? "open" : null;
    ends = next.length === 1 ? next : [...new Set(next)];
  }
  return Math.max(...ends);
}

/** Returns the patterns of a text: plain or escaped, in hex, and in Base64 at each offset. */
function patternsOf(secret: string): Pattern[] {
  const bytes = Buffer.from(secret, "latin1");
  const base64 = [0, 1, 2].map((offset) => {
    const text = Buffer.concat([Buffer.alloc(offset), bytes]).toString("base64");
    // Only the characters that depend on nothing before or after the secret.
    return text.slice(Math.ceil((offset * 8) / 6), Math.floor(((offset + bytes.length) * 8) / 6)).split("");
  });
  return [
    secret.split("").map(escapesOf),
    [...bytes].map((byte) => bothCases(byte.toString(16))),
    ...base64.map((text) => text.map((c) => [...escapesOf(c), ...(c === "+" ? ["-"] : c === "/" ? ["_"] : [])])),
  ].map((characters) => ({
    starts: new Set(characters[0]?.map((spelling) => spelling.charCodeAt(0))),
    characters: characters.map((spellings) => spellings.map((spelling) => Buffer.from(spelling, "latin1"))),
  }));
}

/** Encoders differ in which characters they escape, so each character can be plain or escaped: for URLs, JSON and HTML. */
function escapesOf(c: string): string[] {
  const code = c.charCodeAt(0);
  const hex = bothCases(code.toString(16));
  const named = { "&": "amp", "<": "lt", ">": "gt", '"': "quot", "'": "apos" }[c];
  return [
    c,
    ...hex.flatMap((digits) => [`%${digits}`, `\\u00${digits}`, `&#x${digits};`]),
    `&#${code};`,
    `&#0${code};`,
    ...('"\\/'.includes(c) ? [`\\${c}`] : []),
    ...(named === undefined ? [] : [`&${named};`]),
  ];
}

const bothCases = (hex: string): string[] => [...new Set([hex, hex.toUpperCase()])];
