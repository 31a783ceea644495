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
  assertJson(value, 0);
  return serialize(value);
}

/** UTF-8 of `canonicalText`. */
export function canonicalBytes(value: JsonValue): Uint8Array {
  return utf8(canonicalText(value));
}

/**
 * The package drops undefined members, writes `[,1]` for a hole and `undefined` for a function, and
 * calls `toJSON`: refused here. A `toJSON` or `__proto__` that came out of JSON is data and passes.
 */
function assertJson(value: unknown, depth: number): void {
  if (typeof value !== "object") {
    if (typeof value === "string" || typeof value === "number" || typeof value === "boolean") return;
    throw new TypeError(`there is no canonical JSON for a value of type ${typeof value}: give null for what is absent`);
  }
  if (value === null) return;
  if (depth >= MAX_DEPTH) throw new RangeError(`the value nests deeper than ${MAX_DEPTH} levels, or contains itself`);
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) assertJson(value[i], depth + 1);
    return;
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  // An object of another realm has another Object.prototype, whose own prototype is null all the same.
  if (prototype !== null && Object.getPrototypeOf(prototype) !== null) {
    throw new TypeError("there is no canonical JSON for an object that is not plain: turn it into text or numbers first");
  }
  for (const key of Object.keys(value)) assertJson((value as Record<string, unknown>)[key], depth + 1);
}
