/** Signatures under COSE keys of the three kinds that passkeys use, and malformed keys. */
import assert from "node:assert/strict";
import { generateKeyPairSync, sign, type KeyObject } from "node:crypto";
import { test } from "node:test";
import { parseCoseKey } from "../../src/domain/passkey-key.ts";
import { verifyPasskeySignature } from "../../src/identity/passkey-signature.ts";

const MESSAGE = new TextEncoder().encode("what was shown");

/** Encodes a CBOR item: an integer, or bytes. */
function item(value: number | Buffer): Buffer {
  const head = (major: number, size: number): Buffer =>
    size < 24
      ? Buffer.from([(major << 5) | size])
      : size < 256
        ? Buffer.from([(major << 5) | 24, size])
        : Buffer.from([(major << 5) | 25, size >> 8, size & 255]);
  if (typeof value !== "number") return Buffer.concat([head(2, value.length), value]);
  return value < 0 ? head(1, -1 - value) : head(0, value);
}
const cose = (...members: [number, number | Buffer][]): Buffer =>
  Buffer.concat([
    Buffer.from([0xa0 | members.length]),
    ...members.flatMap(([label, value]) => [item(label), item(value)]),
  ]);
const member = (key: KeyObject, name: "x" | "y" | "n" | "e"): Buffer =>
  Buffer.from(key.export({ format: "jwk" })[name] ?? "", "base64url");

const ec = generateKeyPairSync("ec", { namedCurve: "P-256" });
const ed = generateKeyPairSync("ed25519");
const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 });
const es256 = cose([1, 2], [3, -7], [-1, 1], [-2, member(ec.publicKey, "x")], [-3, member(ec.publicKey, "y")]);
const KINDS: Record<string, { key: Buffer; signature: Buffer }> = {
  ES256: { key: es256, signature: sign("sha256", MESSAGE, ec.privateKey) },
  EdDSA: {
    key: cose([1, 1], [3, -8], [-1, 6], [-2, member(ed.publicKey, "x")]),
    signature: sign(null, MESSAGE, ed.privateKey),
  },
  RS256: {
    key: cose([1, 3], [3, -257], [-1, member(rsa.publicKey, "n")], [-2, member(rsa.publicKey, "e")]),
    signature: sign("sha256", MESSAGE, rsa.privateKey),
  },
};

for (const [name, { key, signature }] of Object.entries(KINDS))
  test(`${name}: the signature is valid only for its message and key`, () => {
    assert.equal(verifyPasskeySignature(key, MESSAGE, signature), true);
    assert.equal(verifyPasskeySignature(key, MESSAGE.subarray(1), signature), false);
    const altered = Buffer.from(signature);
    altered[10] = (altered[10] as number) ^ 1;
    assert.equal(verifyPasskeySignature(key, MESSAGE, altered), false);
    for (const [other, { key: otherKey }] of Object.entries(KINDS))
      if (other !== name) assert.equal(verifyPasskeySignature(otherKey, MESSAGE, signature), false, other);
  });

test("a key with which anyone can make valid signatures is refused", () => {
  const modulus = member(rsa.publicKey, "n");
  const even = Buffer.from(modulus);
  even[255] = (even[255] as number) & 0xfe;
  const ofRsa = (n: Buffer, e: number[]): Buffer => cose([1, 3], [3, -257], [-1, n], [-2, Buffer.from(e)]);
  const ofEd = (hex: string): Buffer => cose([1, 1], [3, -8], [-1, 6], [-2, Buffer.from(hex, "hex")]);
  const small = generateKeyPairSync("rsa", { modulusLength: 1024 }).publicKey;
  const keys: Record<string, Buffer> = {
    "RSA with the exponent 1": ofRsa(modulus, [1]),
    "RSA with the exponent 1 in three bytes": ofRsa(modulus, [0, 0, 1]),
    "RSA with the exponent 3": ofRsa(modulus, [3]),
    "RSA with an even modulus": ofRsa(even, [1, 0, 1]),
    "RSA with 1024 bits": ofRsa(member(small, "n"), [1, 0, 1]),
    "RSA with zeros before 1024 bits": ofRsa(Buffer.concat([Buffer.alloc(128), member(small, "n")]), [1, 0, 1]),
    "RSA with a zero more before 1024 bits": ofRsa(Buffer.concat([Buffer.alloc(129), member(small, "n")]), [1, 0, 1]),
    "Ed25519 with the identity": ofEd(`01${"00".repeat(31)}`),
    "Ed25519 with the identity and the sign bit": ofEd(`01${"00".repeat(30)}80`),
    "Ed25519 with a point of order 4": ofEd("00".repeat(32)),
    "Ed25519 with a point of order 8": ofEd("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85"),
    "Ed25519 in a form that is not canonical": ofEd(`ee${"ff".repeat(31)}`),
    "two values under one label": cose(
      [1, 2],
      [3, -7],
      [-1, 1],
      [-2, member(ec.publicKey, "x")],
      [-2, member(ec.publicKey, "y")],
      [-3, member(ec.publicKey, "y")],
    ),
  };
  for (const [name, key] of Object.entries(keys)) assert.throws(() => parseCoseKey(key), RangeError, name);
  for (const { key } of Object.values(KINDS)) parseCoseKey(key);
});

test("a malformed key, or one of another kind, verifies nothing", () => {
  const { signature } = KINDS["ES256"] ?? assert.fail();
  const x = member(ec.publicKey, "x");
  const keys: Record<string, Uint8Array> = {
    "no bytes": new Uint8Array(),
    "a key that ends early": es256.subarray(0, -1),
    "bytes after the key": Buffer.concat([es256, Buffer.from([0])]),
    "an endless map": Buffer.from([0xbf]),
    "a length above its bytes": Buffer.from([0xa1, 0x01, 0x59, 0xff, 0xff, 0x00]),
    "no curve": cose([1, 2], [3, -7], [-2, x], [-3, x]),
    "another algorithm": cose([1, 2], [3, -35], [-1, 1], [-2, x], [-3, x]),
    "a point off the curve": cose([1, 2], [3, -7], [-1, 1], [-2, x], [-3, x]),
    "a number for a coordinate": cose([1, 2], [3, -7], [-1, 1], [-2, 5], [-3, x]),
  };
  for (const [what, key] of Object.entries(keys))
    assert.equal(verifyPasskeySignature(key, MESSAGE, signature), false, what);
});
