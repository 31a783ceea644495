/** Canonical JSON (RFC 8785): the one text that is hashed, signed and compared. */
import canonicalize from "canonicalize";
import { utf8 } from "./hash.ts";
import type { JsonObject, JsonValue } from "./json.ts";

/** Far above what `parseJson` lets in, far below where recursion would overflow. */
const MAX_DEPTH = 1000;

// The package's types leave out that its result is text for every JSON value.
const serialize = canonicalize as unknown as (value: JsonValue) => string;

/**
 * Throws on whatever is not JSON, so that nothing vanishes from a hash: TypeError for `undefined`
 * (in an array, as a member, in a hole), functions, symbols, bigints and objects that are neither
 * plain nor arrays; RangeError above 1,000 levels, which a circular value reaches; Error for NaN,
 * infinities and lone surrogates, in keys too. -0 becomes 0 (ECMAScript's number to text).
 */
export function canonicalText(value: JsonValue): string {
  const areSorted = sortKeys(value, 0);
  if (areSorted !== UNSORTABLE) {
    const text = JSON.stringify(areSorted);
    // JSON.stringify writes half of a surrogate pair as an escape; the package refuses it by name.
    if (!text.includes("\\ud")) return text;
  }
  return serialize(value);
}

const UNSORTABLE = Symbol("an object whose keys cannot be put in order");

/**
 * The value with every object's keys in order of UTF-16 code units, so that the engine's own
 * serialiser writes RFC 8785: numbers and strings are ECMAScript's there (sections 3.2.2.2 and
 * 3.2.2.3). What is in order already is not copied. Keys that look like array indices keep the
 * engine's order whatever is done, and `__proto__` cannot be set plainly: those go to the package,
 * which is several times slower.
 */
function sortKeys(value: unknown, depth: number): unknown {
  if (typeof value !== "object") {
    if (typeof value === "string" || typeof value === "boolean") return value;
    if (typeof value === "number") return Number.isFinite(value) ? value : UNSORTABLE;
    throw new TypeError(`there is no canonical JSON for a value of type ${typeof value}: give null for what is absent`);
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
    // Looked at all the same: what is not JSON anywhere in it must throw here.
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

/** The serialiser would ask it what to write: a copy is not asked. */
function hasToJson(value: object): boolean {
  return typeof (value as { toJSON?: unknown }).toJSON === "function";
}

/** UTF-8 of `canonicalText`. */
export function canonicalBytes(value: JsonValue): Uint8Array {
  return utf8(canonicalText(value));
}

/** A copy with one more member, in its place where the others are in canonical order: there is nothing to sort then. */
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
 * The package drops undefined members, writes `[,1]` for a hole and `undefined` for a function, and
 * calls `toJSON`: refused above and here. A `toJSON` that came out of JSON is data and passes.
 */
function assertPlain(value: object): void {
  const prototype: unknown = Object.getPrototypeOf(value);
  // An object of another realm has another Object.prototype, whose own prototype is null all the same.
  if (prototype !== null && Object.getPrototypeOf(prototype) !== null) {
    throw new TypeError(
      "there is no canonical JSON for an object that is not plain: turn it into text or numbers first",
    );
  }
}
