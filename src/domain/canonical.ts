/** Canonical JSON (RFC 8785), the form of JSON that digests, commitments and comparisons use. */
import canonicalize from "canonicalize";
import { utf8 } from "./hash.ts";
import type { JsonObject, JsonValue } from "./json.ts";

/** Maximum nesting. Greater than the limit of `parseJson`, and too small to overflow the stack. */
const MAX_DEPTH = 1000;

// The types of `canonicalize` do not say that the result is a string for every JSON value.
const serialize = canonicalize as unknown as (value: JsonValue) => string;

/**
 * Returns the canonical JSON of a value. -0 becomes 0. Throws for anything that is not JSON, so that a hash always
 * covers the whole value:
 * - TypeError for `undefined`, array holes, functions, symbols, bigints, and objects that are neither plain nor arrays
 * - RangeError for more than 1,000 levels, including circular values
 * - Error for NaN, infinities, and lone surrogates in values or keys
 */
export function canonicalText(value: JsonValue): string {
  const sorted = sortKeys(value, 0);
  if (sorted !== UNSORTABLE) {
    const text = JSON.stringify(sorted);
    // JSON.stringify escapes lone surrogates, but the package rejects them.
    if (!text.includes("\\ud")) return text;
  }
  return serialize(value);
}

const UNSORTABLE = Symbol("an object whose keys cannot be put in order");

/**
 * Returns the value with each object's keys sorted by UTF-16 code units. JSON.stringify then writes RFC 8785, because
 * sections 3.2.2.2 and 3.2.2.3 define numbers and strings as ECMAScript does. Copies an object only if its keys or the
 * keys of a value in it are not sorted. Returns UNSORTABLE if the value contains NaN, an infinity, the key `__proto__`,
 * or a key that starts with a digit. JavaScript engines fix the order of integer keys. `canonicalText` then uses the
 * package `canonicalize`, which is several times slower.
 */
function sortKeys(value: unknown, depth: number): unknown {
  if (typeof value !== "object") {
    if (typeof value === "string" || typeof value === "boolean") return value;
    if (typeof value === "number") return Number.isFinite(value) ? value : UNSORTABLE;
    throw new TypeError(`there is no canonical JSON for a value of type ${typeof value}: use null for absent values`);
  }
  if (value === null) return null;
  if (depth >= MAX_DEPTH) throw new RangeError(`the value nests deeper than ${MAX_DEPTH} levels, or contains itself`);
  return Array.isArray(value)
    ? sortKeysInItems(value, depth)
    : sortKeysInMembers(value as Record<string, unknown>, depth);
}

function sortKeysInItems(items: readonly unknown[], depth: number): unknown {
  let copy: unknown[] | null = hasToJson(items) ? [] : null;
  let unsortable = false;
  for (let i = 0; i < items.length; i++) {
    const item = sortKeys(items[i], depth + 1);
    unsortable ||= item === UNSORTABLE;
    if (copy === null && item !== items[i]) copy = items.slice(0, i);
    copy?.push(item);
  }
  return unsortable ? UNSORTABLE : (copy ?? items);
}

function sortKeysInMembers(object: Record<string, unknown>, depth: number): unknown {
  assertPlain(object);
  const keys = Object.keys(object);
  let copied = hasToJson(object) || !inOrder(keys);
  if (copied) keys.sort();
  const copy: Record<string, unknown> = {};
  let unsortable = false;
  for (let i = 0; i < keys.length; i++) {
    const key = keys[i] as string;
    const first = key.charCodeAt(0);
    unsortable ||= (first >= 0x30 && first <= 0x39) || key === "__proto__";
    // Visit the member even after an unsortable one, because a value that is not JSON must throw.
    const item = sortKeys(object[key], depth + 1);
    unsortable ||= item === UNSORTABLE;
    if (unsortable) continue;
    if (!copied && item !== object[key]) {
      copied = true;
      for (let j = 0; j < i; j++) copy[keys[j] as string] = object[keys[j] as string];
    }
    if (copied) copy[key] = item;
  }
  return unsortable ? UNSORTABLE : copied ? copy : object;
}

function inOrder(keys: readonly string[]): boolean {
  for (let i = 1; i < keys.length; i++) if ((keys[i - 1] as string) > (keys[i] as string)) return false;
  return true;
}

/** Returns true if the object has a `toJSON` function, which JSON.stringify would call. */
function hasToJson(value: object): boolean {
  return typeof (value as { toJSON?: unknown }).toJSON === "function";
}

/**
 * Returns `canonicalText` in UTF-8.
 * @example
 * canonicalBytes({ b: 1, a: 2 }); // the bytes of {"a":2,"b":1}
 */
export function canonicalBytes(value: JsonValue): Uint8Array {
  return utf8(canonicalText(value));
}

/** Returns a copy with one more member. If the keys were sorted, they stay sorted. */
export function insertMember(object: JsonObject, name: string, value: JsonValue): JsonObject {
  const copy: JsonObject = {};
  for (const key of Object.keys(object)) {
    if (key > name && !Object.hasOwn(copy, name)) copy[name] = value;
    copy[key] = object[key] as JsonValue;
  }
  copy[name] = value;
  return copy;
}

/**
 * Throws TypeError unless `value` is a plain object. The package `canonicalize` would call `toJSON`, drop undefined
 * members, and write invalid JSON for holes and functions. Accepts a `toJSON` member that is not a function, because it
 * is data.
 */
function assertPlain(value: object): void {
  const prototype: unknown = Object.getPrototypeOf(value);
  // An Object.prototype of another realm differs from ours, but its own prototype is also null.
  if (prototype !== null && Object.getPrototypeOf(prototype) !== null) {
    throw new TypeError(
      "there is no canonical JSON for an object that is not plain: turn it into text or numbers first",
    );
  }
}
