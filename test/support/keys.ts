/** Creates Ed25519 keys, different ones in each run. `signer.ts` has keys that are the same in each run. */
import { generateKeyPairSync, sign } from "node:crypto";
import type { NoteSigner } from "../../src/domain/checkpoint.ts";

/** Creates a private key as PKCS #8 PEM. */
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
