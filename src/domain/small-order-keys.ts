/**
 * Recognises Ed25519 public keys of small order. Anyone can create signatures that such a key verifies for many or all
 * messages, and Node and browsers accept these signatures.
 */
import { toHex } from "./hash.ts";

/** All encodings of points of small order, without the sign bit. */
const SMALL_ORDER: ReadonlySet<string> = new Set([
  `00${"00".repeat(31)}`,
  `01${"00".repeat(31)}`,
  "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
  "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
  `ec${"ff".repeat(30)}7f`,
  `ed${"ff".repeat(30)}7f`,
  `ee${"ff".repeat(30)}7f`,
]);

export function isSmallOrderKey(publicKey: Uint8Array): boolean {
  const unsigned = publicKey.slice();
  if (unsigned[31] !== undefined) unsigned[31] &= 0x7f;
  return SMALL_ORDER.has(toHex(unsigned));
}
