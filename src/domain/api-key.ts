/**
 * The format of an API key: `assent_`, then 32 random bytes in base64url (43 characters), then a CRC-32 in hex (8
 * characters). The prefix lets secret scanners find leaked keys. The checksum detects a mistyped key without a database
 * read.
 */
import { toBase64Url, utf8 } from "./hash.ts";

const KEY_PREFIX = "assent_";
const KEY_PATTERN = /^assent_[A-Za-z0-9_-]{43}[0-9a-f]{8}$/;

const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, n) => {
  let c = n;
  for (let bit = 0; bit < 8; bit++) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1;
  return c >>> 0;
});

/** Returns the CRC-32 (ISO-HDLC, as in zlib and PNG) as 8 hex digits. */
function crc32Hex(bytes: Uint8Array): string {
  let c = 0xffffffff;
  for (const byte of bytes) c = (CRC_TABLE[(c ^ byte) & 0xff] as number) ^ (c >>> 8);
  return ((c ^ 0xffffffff) >>> 0).toString(16).padStart(8, "0");
}

/** Returns the API key for 32 random bytes. */
export function formatKey(random: Uint8Array): string {
  const body = KEY_PREFIX + toBase64Url(random);
  return body + crc32Hex(utf8(body));
}

/**
 * Checks a key's format. `mistyped`: the key has the right prefix, but the length, the characters or the checksum are
 * wrong. `foreign`: the prefix is missing.
 */
export function checkKeyFormat(value: string): "ok" | "mistyped" | "foreign" {
  if (!value.startsWith(KEY_PREFIX)) return "foreign";
  if (!KEY_PATTERN.test(value)) return "mistyped";
  return crc32Hex(utf8(value.slice(0, -8))) === value.slice(-8) ? "ok" : "mistyped";
}
