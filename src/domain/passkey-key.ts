/** Public keys of passkeys: COSE keys (RFC 9052) for ES256, EdDSA with Ed25519, and RS256. */
import { fromBase64Url, toBase64Url } from "./hash.ts";
import { isSmallOrderKey } from "./small-order-keys.ts";

type CoseMap = Map<number, number | Uint8Array>;

/** A key in the form that WebCrypto and Node import. */
interface PasskeyKey {
  algorithm: "ES256" | "EdDSA" | "RS256";
  jwk: Record<string, string>;
}

/**
 * Parses a COSE key. Throws RangeError if it is malformed or its algorithm is not supported.
 * @example
 * parseCoseKey(fromHex(passkey.public_key));
 */
export function parseCoseKey(coseKey: Uint8Array): PasskeyKey {
  const map = parseCoseMap(coseKey);
  const [type, algorithm, curve] = [map.get(1), map.get(3), map.get(-1)];
  if (type === 2 && algorithm === -7 && curve === 1)
    return { algorithm: "ES256", jwk: { kty: "EC", crv: "P-256", x: bytes(map, -2), y: bytes(map, -3) } };
  if (type === 1 && algorithm === -8 && curve === 6) {
    const x = bytes(map, -2);
    assertEd25519Key(x);
    return { algorithm: "EdDSA", jwk: { kty: "OKP", crv: "Ed25519", x } };
  }
  if (type === 3 && algorithm === -257) {
    const [n, e] = [bytes(map, -1), bytes(map, -2)];
    assertRsaKey(n, e);
    return { algorithm: "RS256", jwk: { kty: "RSA", n, e } };
  }
  throw new RangeError("the COSE key is not ES256, EdDSA or RS256");
}

/** The exponent 65537, which all authenticators use. With others, such as 1, signatures can be forged. */
const RSA_EXPONENT = "AQAB";
const MIN_RSA_BYTES = 256;

/** Throws RangeError for an RSA key with another exponent, or with a modulus that is even or shorter than 2048 bits. */
function assertRsaKey(n: string, e: string): void {
  const modulus = fromBase64Url(n);
  if (e !== RSA_EXPONENT) throw new RangeError("the exponent of the RSA key is not 65537");
  const first = modulus[0] ?? 0;
  // With zeros at the start, a short modulus would pass as a long one. COSE does not allow them.
  const isLong = first !== 0 && (modulus.length > MIN_RSA_BYTES || (modulus.length === MIN_RSA_BYTES && first >= 0x80));
  if (!isLong || ((modulus.at(-1) as number) & 1) === 0)
    throw new RangeError("the modulus of the RSA key is even, shorter than 2048 bits, or begins with zeros");
}

/** Throws RangeError for a key of small order. */
function assertEd25519Key(x: string): void {
  const point = fromBase64Url(x);
  if (point.length !== 32) throw new RangeError("the Ed25519 key does not have 32 bytes");
  if (isSmallOrderKey(point)) throw new RangeError("the Ed25519 key is a point of small order");
}

function bytes(map: CoseMap, label: number): string {
  const value = map.get(label);
  if (!(value instanceof Uint8Array)) throw new RangeError(`the COSE key has no bytes under ${label}`);
  return toBase64Url(value);
}

/**
 * Parses a CBOR map with integer keys whose values are integers or byte strings. COSE keys of these algorithms contain
 * nothing else.
 */
function parseCoseMap(encoded: Uint8Array): CoseMap {
  let at = 0;
  const next = (count: number): Uint8Array => {
    if (at + count > encoded.length) throw new RangeError("the COSE key ends early");
    at += count;
    return encoded.subarray(at - count, at);
  };
  const head = (): { major: number; value: number } => {
    const first = next(1)[0] as number;
    const short = first & 0x1f;
    if (short > 25) throw new RangeError("the COSE key contains a length that no key has");
    const value = short < 24 ? short : next(short === 24 ? 1 : 2).reduce((sum, byte) => sum * 256 + byte, 0);
    return { major: first >> 5, value };
  };
  const integer = ({ major, value }: { major: number; value: number }): number => {
    if (major > 1) throw new RangeError("a label of the COSE key is not an integer");
    return major === 0 ? value : -1 - value;
  };
  const map: CoseMap = new Map();
  const { major, value: size } = head();
  if (major !== 5) throw new RangeError("the COSE key is not a map");
  for (let i = 0; i < size; i++) {
    const label = integer(head());
    if (map.has(label)) throw new RangeError(`the COSE key has two values under ${label}`);
    const item = head();
    map.set(label, item.major === 2 ? next(item.value) : integer(item));
  }
  if (at !== encoded.length) throw new RangeError("bytes follow the COSE key");
  return map;
}
