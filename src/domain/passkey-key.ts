/** Public keys of passkeys: COSE keys (RFC 9052) for ES256, EdDSA with Ed25519, and RS256. */
import { toBase64Url } from "./hash.ts";

type CoseMap = Map<number, number | Uint8Array>;

/** A key in the form that WebCrypto and Node import. */
interface PasskeyKey {
  algorithm: "ES256" | "EdDSA" | "RS256";
  jwk: Record<string, string>;
}

/** Parses a COSE key. Throws RangeError if it is malformed or its algorithm is not supported. */
export function parseCoseKey(coseKey: Uint8Array): PasskeyKey {
  const map = parseCoseMap(coseKey);
  const [type, algorithm, curve] = [map.get(1), map.get(3), map.get(-1)];
  if (type === 2 && algorithm === -7 && curve === 1)
    return { algorithm: "ES256", jwk: { kty: "EC", crv: "P-256", x: bytes(map, -2), y: bytes(map, -3) } };
  if (type === 1 && algorithm === -8 && curve === 6)
    return { algorithm: "EdDSA", jwk: { kty: "OKP", crv: "Ed25519", x: bytes(map, -2) } };
  if (type === 3 && algorithm === -257)
    return { algorithm: "RS256", jwk: { kty: "RSA", n: bytes(map, -1), e: bytes(map, -2) } };
  throw new RangeError("the COSE key is not ES256, EdDSA or RS256");
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
    const item = head();
    map.set(label, item.major === 2 ? next(item.value) : integer(item));
  }
  if (at !== encoded.length) throw new RangeError("bytes follow the COSE key");
  return map;
}
