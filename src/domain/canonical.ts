import canonicalize from "canonicalize";
import { utf8 } from "./hash.ts";
import type { JsonValue } from "./json.ts";

/**
 * Canonical JSON (RFC 8785). Throws on what is not JSON: NaN, infinities, lone surrogates,
 * `undefined` and anything else that JSON.stringify would drop.
 */
export function canonicalText(value: JsonValue): string {
  const text = (canonicalize as unknown as (value: unknown) => string | undefined)(value);
  if (text === undefined) throw new TypeError("there is no canonical JSON for undefined");
  return text;
}

/** UTF-8 of `canonicalText`. */
export function canonicalBytes(value: JsonValue): Uint8Array {
  return utf8(canonicalText(value));
}
