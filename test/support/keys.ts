/** Ed25519 keys that are other ones in each run; `signer.ts` has those that are always the same. */
import { generateKeyPairSync, sign } from "node:crypto";
import type { NoteSigner } from "../../src/domain/checkpoint.ts";

/** A private key, PKCS #8 in PEM. */
export const newKey = (): string =>
  generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }) as string;

export function newSigner(name: string): NoteSigner {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  return {
    name,
    publicKey: new Uint8Array(publicKey.export({ type: "spki", format: "der" }).subarray(12)),
    sign: (message) => new Uint8Array(sign(null, message, privateKey)),
  };
}
