/**
 * Parses JSON strictly, so that every reader gets the same value. `JSON.parse` uses the last of two equal keys, rounds
 * integers beyond 2^53 and accepts lone surrogates. Each of these could make the action that runs differ from the
 * action that was decided on. One pass over the source rejects such input before any value is created.
 */
import { escapePointerToken } from "./json-pointer.ts";

/** A value that `JSON.parse` returns. */
export type JsonValue = null | boolean | number | string | JsonValue[] | JsonObject;
export type JsonObject = { [key: string]: JsonValue };

export type JsonFaultCode =
  | "MALFORMED_JSON"
  | "DUPLICATE_KEY"
  | "LONE_SURROGATE"
  | "UNSAFE_INTEGER"
  | "TOO_DEEP"
  | "TOO_MANY_VALUES";

/**
 * Returns true if a JSON value is an object.
 * @example
 * isJsonObject([]); // false
 */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export class JsonFault extends Error {
  readonly code: JsonFaultCode;
  /** RFC 6901 pointer to the offending value; null if unknown. */
  readonly pointer: string | null;
  /** Offset in UTF-16 code units; null if unknown. */
  readonly offset: number | null;
  constructor(code: JsonFaultCode, message: string, pointer: string | null, offset: number | null) {
    super(message);
    this.name = "JsonFault";
    this.code = code;
    this.pointer = pointer;
    this.offset = offset;
  }
}

export const MAX_JSON_DEPTH = 64;

export interface JsonLimits {
  /** Maximum nesting depth. */
  maxDepth?: number;
  /** Maximum number of members and items. Limited because each value uses far more memory than its source. */
  maxValues?: number;
  /**
   * Returns true to ignore a fault. Default: no fault is ignored. `member` is the key in the outermost object under
   * which the fault occurs; "" if the fault is in a key of that object, or if the outermost value is not an object.
   * `depth` is the number of objects and arrays around it. Called once for each fault.
   */
  isHarmless?(code: JsonFaultCode, member: string, depth: number): boolean;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const MINUS = 0x2d;
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * Decodes UTF-8; returns null if it is invalid. Does not remove a byte order mark, so `parseJson` rejects it (RFC 8259
 * section 8.1).
 */
export function decodeUtf8(bytes: Uint8Array): string | null {
  try {
    return decoder.decode(bytes);
  } catch {
    return null;
  }
}

/**
 * Parses JSON with the rules for requests. Throws JsonFault for malformed JSON, duplicate members, lone surrogates,
 * integers beyond 2^53, and exceeded limits.
 * @example
 * const value = parseJson('{"status":"open"}');
 */
export function parseJson(text: string, limits: JsonLimits = {}): JsonValue {
  if (text.charCodeAt(0) === 0xfeff)
    throw new JsonFault(
      "MALFORMED_JSON",
      "the text starts with a byte order mark; send it without (RFC 8259 section 8.1)",
      null,
      0,
    );
  checkJson(text, limits);
  try {
    return JSON.parse(text) as JsonValue;
  } catch (error) {
    throw new JsonFault(
      "MALFORMED_JSON",
      `the text is not JSON: ${error instanceof Error ? error.message : String(error)}`,
      null,
      null,
    );
  }
}

interface Level {
  /** Keys of the current object so far; null in an array. */
  keys: Set<string> | null;
  /** The current key or index. */
  keyOrIndex: string | number;
  /** Whether the next string is a key. */
  wantsKey: boolean;
}

/**
 * Checks for faults that JSON.parse would accept. Does not report syntax errors, because JSON.parse does.
 * @throws JsonFault
 */
export function checkJson(
  text: string,
  { maxDepth = MAX_JSON_DEPTH, maxValues = Infinity, isHarmless }: JsonLimits = {},
): void {
  let values = 0;
  const levels: Level[] = [];
  let level: Level | null = null;
  const pointer = (): string =>
    levels.map((l) => (l.wantsKey ? "" : `/${escapePointerToken(String(l.keyOrIndex))}`)).join("");
  const reportFault = (code: JsonFaultCode, message: string, offset: number): void => {
    const [top] = levels;
    const member = top === undefined || top.keys === null || top.wantsKey ? "" : String(top.keyOrIndex);
    if (isHarmless?.(code, member, levels.length) !== true) throw new JsonFault(code, message, pointer(), offset);
  };

  const tooMany = (offset: number): void =>
    reportFault("TOO_MANY_VALUES", `the text has more than ${maxValues} values; send fewer members and items`, offset);

  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c === QUOTE) {
      const start = i;
      let escaped = false;
      for (i++; i < text.length; i++) {
        const s = text.charCodeAt(i);
        if (s === QUOTE) break;
        if (s === BACKSLASH) {
          escaped = true;
          i++;
        } else if (s >= 0xd800 && s <= 0xdfff) {
          const next = text.charCodeAt(i + 1);
          if (s < 0xdc00 && next >= 0xdc00 && next <= 0xdfff) i++;
          else reportFault("LONE_SURROGATE", "a string contains half of a surrogate pair", i);
        }
      }
      if (i >= text.length) return;
      const value = escaped ? unescape(text.slice(start, i + 1)) : null;
      if (value !== null && hasLoneSurrogate(value))
        reportFault("LONE_SURROGATE", "a string contains half of a surrogate pair", start);
      if (level !== null && level.keys !== null && level.wantsKey) {
        const key = value ?? text.slice(start + 1, i);
        level.keyOrIndex = key;
        level.wantsKey = false;
        if (level.keys.has(key))
          reportFault("DUPLICATE_KEY", `the key ${JSON.stringify(clip(key))} appears twice in one object`, start);
        level.keys.add(key);
      }
    } else if (c === 0x7b || c === 0x5b) {
      if (levels.length >= maxDepth) reportFault("TOO_DEEP", `the text nests deeper than ${maxDepth} levels`, i);
      level =
        c === 0x7b
          ? { keys: new Set(), keyOrIndex: "", wantsKey: true }
          : { keys: null, keyOrIndex: 0, wantsKey: false };
      levels.push(level);
      if (++values > maxValues) tooMany(i);
    } else if (c === 0x7d || c === 0x5d) {
      levels.pop();
      level = levels.at(-1) ?? null;
    } else if (c === 0x2c && level !== null) {
      if (++values > maxValues) tooMany(i);
      if (level.keys !== null) level.wantsKey = true;
      else level.keyOrIndex = (level.keyOrIndex as number) + 1;
    } else if (c === MINUS || (c >= 0x30 && c <= 0x39)) {
      const start = i;
      i = endOfNumber(text, i);
      const token = text.slice(start, i);
      i--;
      if (!isExact(token))
        reportFault(
          "UNSAFE_INTEGER",
          `the number ${clip(token)} cannot be represented exactly; send it as a string`,
          start,
        );
    }
  }
}

/** Shortens an external string for messages. */
function clip(text: string): string {
  return text.length > 40 ? `${text.slice(0, 40)}…` : text;
}

function endOfNumber(text: string, from: number): number {
  let i = from + 1;
  for (; i < text.length; i++) {
    const c = text.charCodeAt(i);
    // The digits, `.`, `+`, `-`, `e` and `E`.
    if (!((c >= 0x30 && c <= 0x39) || c === 0x2e || c === 0x2b || c === 0x2d || c === 0x65 || c === 0x45)) break;
  }
  return i;
}

/**
 * Returns true if the number is accepted: a safe integer, or a number with a fraction or an exponent that keeps its
 * value. Also returns true for a malformed number, which JSON.parse reports.
 */
function isExact(token: string): boolean {
  // Fast path: a number of up to 15 characters without an exponent is always safe and keeps its value.
  if (token.length < 16 && !/[eE]/.test(token)) return true;
  const value = Number(token);
  if (Number.isNaN(value)) return true;
  return /^-?\d+$/.test(token) ? Number.isSafeInteger(value) : keepsValue(token);
}

/** Between these bounds, a double differs from its decimal number by at most one part in 2^53. */
const LEAST_PRECISE = 2 ** -1022;
const MOST_PRECISE = 2 ** 53;
/** Maximum number of digits that `toPrecision` can print. */
const MAX_DIGITS = 100;

/**
 * Returns true if a decimal number keeps its value as a double. Digits after the 16th may be lost. The number must not
 * overflow or underflow. If it is beyond 2^53 or close to 0, the double must print as the same number.
 * @example
 * keepsValue("0.1"); // true
 * keepsValue("1e-400"); // false, because the double is 0
 * keepsValue("9007199254740993.0"); // false, because the double is 9007199254740992
 */
export function keepsValue(decimal: string): boolean {
  const value = Number(decimal);
  const size = Math.abs(value);
  if (size >= LEAST_PRECISE && size < MOST_PRECISE) return true;
  if (value === 0) return !/^[^eE]*[1-9]/.test(decimal);
  const digits = significantDigits(decimal);
  if (!Number.isFinite(value) || digits.length > MAX_DIGITS) return false;
  return significantDigits(value.toPrecision(digits.length)) === digits;
}

/** Returns the digits of a decimal number without a sign, a point, an exponent, and zeros at either end. */
function significantDigits(decimal: string): string {
  const digits = decimal
    .replace(/[eE].*/s, "")
    .replace(/^[-+]?[0.]*/, "")
    .replace(".", "");
  let end = digits.length;
  while (digits[end - 1] === "0") end--;
  return digits.slice(0, end);
}

/** Decodes a raw string token. Returns null if it is invalid; JSON.parse then reports the fault. */
function unescape(token: string): string | null {
  try {
    return JSON.parse(token) as string;
  } catch {
    return null;
  }
}

function hasLoneSurrogate(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c < 0xd800 || c > 0xdfff) continue;
    const next = text.charCodeAt(i + 1);
    if (c >= 0xdc00 || !(next >= 0xdc00 && next <= 0xdfff)) return true;
    i++;
  }
  return false;
}
