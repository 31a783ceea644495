/** Canonical JSON (RFC 8785): the one text that is hashed, signed and compared. */
import canonicalize from "canonicalize";
import { utf8 } from "./hash.ts";
import type { JsonValue } from "./json.ts";

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
  const sorted = sortedCopy(value, 0);
  if (sorted !== UNSORTABLE) {
    const text = JSON.stringify(sorted);
    // JSON.stringify writes half of a surrogate pair as an escape; the package refuses it by name.
    if (!text.includes("\\ud")) return text;
  }
  return serialize(value);
}

const UNSORTABLE = Symbol("an object whose keys cannot be put in order");

/**
 * The value with every object's keys in order of UTF-16 code units, so that the engine's own
 * serialiser writes RFC 8785: numbers and strings are ECMAScript's there (sections 3.2.2.2 and
 * 3.2.2.3). Keys that look like array indices keep the engine's order whatever is done, and
 * `__proto__` cannot be set plainly: those go to the package, which is several times slower.
 */
function sortedCopy(value: unknown, depth: number): unknown {
  if (typeof value !== "object") {
    if (typeof value === "string" || typeof value === "boolean") return value;
    if (typeof value === "number") return Number.isFinite(value) ? value : UNSORTABLE;
    throw new TypeError(`there is no canonical JSON for a value of type ${typeof value}: give null for what is absent`);
  }
  if (value === null) return null;
  if (depth >= MAX_DEPTH) throw new RangeError(`the value nests deeper than ${MAX_DEPTH} levels, or contains itself`);
  let unsortable = false;
  if (Array.isArray(value)) {
    const copy: unknown[] = [];
    for (let i = 0; i < value.length; i++) {
      const item = sortedCopy(value[i], depth + 1);
      unsortable ||= item === UNSORTABLE;
      copy.push(item);
    }
    return unsortable ? UNSORTABLE : copy;
  }
  assertPlain(value);
  const copy: Record<string, unknown> = {};
  for (const key of Object.keys(value).sort()) {
    const first = key.charCodeAt(0);
    unsortable ||= (first >= 0x30 && first <= 0x39) || key === "__proto__";
    // Looked at all the same: what is not JSON anywhere in it must throw here.
    const item = sortedCopy((value as Record<string, unknown>)[key], depth + 1);
    unsortable ||= item === UNSORTABLE;
    if (!unsortable) copy[key] = item;
  }
  return unsortable ? UNSORTABLE : copy;
}

/** UTF-8 of `canonicalText`. */
export function canonicalBytes(value: JsonValue): Uint8Array {
  return utf8(canonicalText(value));
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
