/** Digests and byte encodings. Also runs in browsers, so it does not use Buffer. */
import { sha256 as nobleSha256 } from "@noble/hashes/sha2.js";

const encoder = new TextEncoder();
const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

/**
 * Encodes a string as UTF-8. Lone surrogates become U+FFFD, so validate external strings with `parseJson` or
 * `decodeUtf8` first.
 * @example
 * utf8("é").length; // 2
 */
export function utf8(text: string): Uint8Array {
  return encoder.encode(text);
}

let digest: (bytes: Uint8Array) => Uint8Array = nobleSha256;

/**
 * Replaces the portable SHA-256 with the platform's, which is three times faster. Throws Error if the two disagree on
 * test inputs.
 */
export function setSha256(native: (bytes: Uint8Array) => Uint8Array): void {
  for (const length of [0, 1, 55, 64, 119, 1000]) {
    const probe = new Uint8Array(length).fill(length);
    if (!equalBytes(native(probe), nobleSha256(probe)))
      throw new Error("the platform's SHA-256 computes different digests than the portable implementation");
  }
  digest = native;
}

export function sha256(bytes: Uint8Array): Uint8Array {
  return digest(bytes);
}

/**
 * Returns the SHA-256 of the bytes in hex.
 * @example
 * sha256Hex(utf8("abc")); // "ba7816bf…"
 */
export function sha256Hex(bytes: Uint8Array): string {
  return toHex(digest(bytes));
}

export function concatBytes(...parts: Uint8Array[]): Uint8Array {
  const joined = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}

/**
 * Compares two arrays, in constant time if they have equal lengths.
 * @example
 * equalBytes(fromHex("00"), new Uint8Array(1)); // true
 */
export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  let difference = 0;
  for (let i = 0; i < a.length; i++) difference |= (a[i] as number) ^ (b[i] as number);
  return difference === 0;
}

/**
 * Encodes bytes as lowercase hex.
 * @example
 * toHex(new Uint8Array([0, 255])); // "00ff"
 */
export function toHex(bytes: Uint8Array): string {
  let text = "";
  for (let i = 0; i < bytes.length; i++) text += HEX[bytes[i] as number];
  return text;
}

/** Maps the code unit of a lowercase hex digit to its value. The value of other characters is 255. */
const DIGITS = new Uint8Array(128).fill(255);
for (const [value, digit] of Array.from("0123456789abcdef").entries()) DIGITS[digit.charCodeAt(0)] = value;

/**
 * Decodes lowercase hex. Throws RangeError for any other string.
 * @example
 * fromHex("00ff"); // Uint8Array [0, 255]
 */
export function fromHex(text: string): Uint8Array {
  const { length } = text;
  const bytes = new Uint8Array(length >> 1);
  let wrong = length & 1;
  for (let i = 0; i < bytes.length; i++) {
    const high = DIGITS[text.charCodeAt(2 * i)] ?? 255;
    const low = DIGITS[text.charCodeAt(2 * i + 1)] ?? 255;
    wrong |= (high | low) & 0xf0;
    bytes[i] = (high << 4) | low;
  }
  if (wrong !== 0) throw new RangeError("not lowercase hex");
  return bytes;
}

interface Base64 {
  alphabet: string;
  /** The two characters for each 12-bit value. Encoding two characters at a time halves the number of steps. */
  pairs: readonly string[];
  pad: readonly [string, string];
}

function base64Of(last: string, pad: Base64["pad"]): Base64 {
  const alphabet = `ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789${last}`;
  return {
    alphabet,
    pad,
    pairs: Array.from({ length: 4096 }, (_, bits) => (alphabet[bits >> 6] as string) + (alphabet[bits & 63] as string)),
  };
}

const STANDARD = base64Of("+/", ["==", "="]);
const URL_SAFE = base64Of("-_", ["", ""]);

function encodeBase64(bytes: Uint8Array, { alphabet, pairs, pad }: Base64): string {
  const fullLength = bytes.length - (bytes.length % 3);
  let text = "";
  for (let i = 0; i < fullLength; i += 3) {
    const bits = ((bytes[i] as number) << 16) | ((bytes[i + 1] as number) << 8) | (bytes[i + 2] as number);
    text += (pairs[bits >> 12] as string) + (pairs[bits & 4095] as string);
  }
  if (bytes.length - fullLength === 1) return text + (pairs[(bytes[fullLength] as number) << 4] as string) + pad[0];
  if (bytes.length - fullLength === 2) {
    const bits = ((bytes[fullLength] as number) << 10) | ((bytes[fullLength + 1] as number) << 2);
    return text + (pairs[bits >> 6] as string) + (alphabet[bits & 63] as string) + pad[1];
  }
  return text;
}

/** Encodes bytes as padded base64 (RFC 4648 section 4). */
export function toBase64(bytes: Uint8Array): string {
  return encodeBase64(bytes, STANDARD);
}

/** Decodes padded base64 (RFC 4648 section 4). Throws RangeError unless `text` is the canonical encoding. */
export function fromBase64(text: string): Uint8Array {
  if (text.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(text)) throw new RangeError("not standard padded base64");
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  // Reject non-zero padding bits (section 3.5), because two strings would then represent the same bytes.
  if (toBase64(bytes) !== text) throw new RangeError("not canonical base64");
  return bytes;
}

/** Encodes bytes as unpadded base64url (RFC 4648 section 5). */
export function toBase64Url(bytes: Uint8Array): string {
  return encodeBase64(bytes, URL_SAFE);
}

/** Decodes unpadded base64url. Throws RangeError unless `text` is the canonical encoding. */
export function fromBase64Url(text: string): Uint8Array {
  if (!/^[A-Za-z0-9_-]*$/.test(text) || text.length % 4 === 1) throw new RangeError("not unpadded base64url");
  return fromBase64(text.replaceAll("-", "+").replaceAll("_", "/") + "=".repeat((4 - (text.length % 4)) % 4));
}
