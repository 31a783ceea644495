/** Ed25519 keys that are the same in each run. `keys.ts` creates new ones. */
import { createPrivateKey, createPublicKey, sign, verify } from "node:crypto";
import { formatVkey, type NoteSigner, type VerifySignature } from "../../src/domain/checkpoint.ts";

const PKCS8 = "302e020100300506032b657004220420";
const SPKI = "302a300506032b6570032100";

/** Returns a signer whose seed is 32 bytes that count up from `from`. The test vectors use 0. */
export function signerOf(name: string, from = 0): NoteSigner & { vkey: string } {
  const seed = Uint8Array.from({ length: 32 }, (_, i) => (from + i) % 256);
  const key = createPrivateKey({ key: Buffer.concat([Buffer.from(PKCS8, "hex"), seed]), format: "der", type: "pkcs8" });
  const publicKey = new Uint8Array(createPublicKey(key).export({ type: "spki", format: "der" }).subarray(12));
  return {
    name,
    publicKey,
    vkey: formatVkey(name, publicKey),
    sign: (message) => new Uint8Array(sign(null, message, key)),
  };
}

export const ed25519: VerifySignature = (publicKey, message, signature) =>
  verify(
    null,
    message,
    createPublicKey({ key: Buffer.concat([Buffer.from(SPKI, "hex"), publicKey]), format: "der", type: "spki" }),
    signature,
  );
