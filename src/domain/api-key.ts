/**
 * The form of an API key: `assent_` + 32 random bytes in base64url (43 characters) + a CRC-32 in
 * hex (8). The prefix lets secret scanners find one; the checksum tells a typing error from a
 * revoked key without a look at the store.
 */
import { toBase64Url, utf8 } from "./hash.ts";

export const KEY_PREFIX = "assent_";
const KEY_PATTERN = /^assent_[A-Za-z0-9_-]{43}[0-9a-f]{8}$/;

const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, n) => {
  let c = n;
  for (let bit = 0; bit < 8; bit++) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1;
  return c >>> 0;
});

/** CRC-32 as of ISO-HDLC (zlib, PNG), 8 hex digits. */
export function crc32Hex(bytes: Uint8Array): string {
  let c = 0xffffffff;
  for (const byte of bytes) c = (CRC_TABLE[(c ^ byte) & 0xff] as number) ^ (c >>> 8);
  return ((c ^ 0xffffffff) >>> 0).toString(16).padStart(8, "0");
}

/** @param random 32 bytes */
export function formatKey(random: Uint8Array): string {
  const body = KEY_PREFIX + toBase64Url(random);
  return body + crc32Hex(utf8(body));
}

/** `mistyped`: it looks like one of ours and its checksum is wrong. `foreign`: it does not look like one of ours. */
export function checkKeyFormat(value: string): "ok" | "mistyped" | "foreign" {
  if (!value.startsWith(KEY_PREFIX)) return "foreign";
  if (!KEY_PATTERN.test(value)) return "mistyped";
  return crc32Hex(utf8(value.slice(0, -8))) === value.slice(-8) ? "ok" : "mistyped";
}
