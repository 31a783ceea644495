/** Digests and byte encodings. Runs in a browser too: no Buffer. */
import { hmac } from "@noble/hashes/hmac.js";
import { sha256 as nobleSha256 } from "@noble/hashes/sha2.js";

const encoder = new TextEncoder();
const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

/** A lone surrogate would come out as U+FFFD: texts from outside pass `parseJson` or `decodeUtf8` first. */
export function utf8(text: string): Uint8Array {
  return encoder.encode(text);
}

let digest: (bytes: Uint8Array) => Uint8Array = nobleSha256;

/**
 * Puts a platform's own SHA-256 in place of the portable one, which is three times slower. Tried
 * against it first: one that differs is refused with an Error.
 */
export function setSha256(native: (bytes: Uint8Array) => Uint8Array): void {
  for (const length of [0, 1, 55, 64, 119, 1000]) {
    const probe = new Uint8Array(length).fill(length);
    if (!equalBytes(native(probe), nobleSha256(probe)))
      throw new Error("the platform's SHA-256 gives other digests than the portable one");
  }
  digest = native;
}

export function sha256(bytes: Uint8Array): Uint8Array {
  return digest(bytes);
}

export function sha256Hex(bytes: Uint8Array): string {
  return toHex(digest(bytes));
}

export function hmacSha256(key: Uint8Array, message: Uint8Array): Uint8Array {
  return hmac(nobleSha256, key, message);
}

export function concatBytes(...parts: Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** Takes the same time wherever the two differ. */
export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  let difference = 0;
  for (let i = 0; i < a.length; i++) difference |= (a[i] as number) ^ (b[i] as number);
  return difference === 0;
}

/** Lowercase. */
export function toHex(bytes: Uint8Array): string {
  let text = "";
  for (let i = 0; i < bytes.length; i++) text += HEX[bytes[i] as number];
  return text;
}

/** By code unit: the value of a lowercase hex digit; 255 for everything else. */
const DIGITS = new Uint8Array(128).fill(255);
for (const [value, digit] of Array.from("0123456789abcdef").entries()) DIGITS[digit.charCodeAt(0)] = value;

/** Throws RangeError for anything but pairs of lowercase hex digits. */
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
  /** The two characters of every twelve bits: half the steps of one character at a time. */
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
  const whole = bytes.length - (bytes.length % 3);
  let text = "";
  for (let i = 0; i < whole; i += 3) {
    const bits = ((bytes[i] as number) << 16) | ((bytes[i + 1] as number) << 8) | (bytes[i + 2] as number);
    text += (pairs[bits >> 12] as string) + (pairs[bits & 4095] as string);
  }
  if (bytes.length - whole === 1) return text + (pairs[(bytes[whole] as number) << 4] as string) + pad[0];
  if (bytes.length - whole === 2) {
    const bits = ((bytes[whole] as number) << 10) | ((bytes[whole + 1] as number) << 2);
    return text + (pairs[bits >> 6] as string) + (alphabet[bits & 63] as string) + pad[1];
  }
  return text;
}

/** RFC 4648 section 4, padded. */
export function toBase64(bytes: Uint8Array): string {
  return encodeBase64(bytes, STANDARD);
}

/** RFC 4648 section 4. Throws RangeError unless `text` is exactly what `toBase64` gives for its bytes. */
export function fromBase64(text: string): Uint8Array {
  if (text.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(text)) throw new RangeError("not standard padded base64");
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  // Spare bits that are not zero decode to the same bytes: two texts for one value (section 3.5).
  if (toBase64(bytes) !== text) throw new RangeError("not canonical base64");
  return bytes;
}

/** RFC 4648 section 5, without padding. */
export function toBase64Url(bytes: Uint8Array): string {
  return encodeBase64(bytes, URL_SAFE);
}

/** Throws RangeError unless `text` is exactly what `toBase64Url` gives for its bytes. */
export function fromBase64Url(text: string): Uint8Array {
  if (!/^[A-Za-z0-9_-]*$/.test(text) || text.length % 4 === 1) throw new RangeError("not unpadded base64url");
  return fromBase64(text.replaceAll("-", "+").replaceAll("_", "/") + "=".repeat((4 - (text.length % 4)) % 4));
}
