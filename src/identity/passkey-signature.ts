/** Verifies signatures of passkeys under their COSE keys (RFC 9052): ES256, EdDSA with Ed25519, and RS256. */
import { createPublicKey, verify, type JsonWebKey } from "node:crypto";
import { parseCoseKey } from "../domain/passkey-key.ts";

/** Verifies `signature` over `message`. Returns false if the key is malformed or its algorithm is not supported. */
export function verifyPasskeySignature(coseKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  try {
    const { algorithm, jwk } = parseCoseKey(coseKey);
    const key = createPublicKey({ key: jwk as JsonWebKey, format: "jwk" });
    return verify(algorithm === "EdDSA" ? null : "sha256", message, key, signature);
  } catch {
    return false;
  }
}
