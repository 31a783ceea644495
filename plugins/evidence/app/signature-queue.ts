/**
 * Lets functions that expect a synchronous result verify signatures with WebCrypto, which is asynchronous: the queue
 * returns true immediately, and verifies the signature later.
 */
import { parseCoseKey } from "../../../src/browser.ts";

type Verify = (publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array) => boolean;

interface SignatureQueue {
  /** Returns a function that queues an Ed25519 signature for verification. */
  ed25519(subject: string): Verify;
  /** Returns a function that queues a signature by a COSE key for verification. */
  passkey(subject: string): Verify;
  /** Verifies all queued signatures. Returns a sentence for each invalid signature. */
  drain(): Promise<string[]>;
}

export function createSignatureQueue(): SignatureQueue {
  let queue: { what: string; isValid(): Promise<boolean> }[] = [];
  return {
    ed25519: (subject) => (publicKey, message, signature) => {
      queue.push({
        what: subject,
        async isValid() {
          const key = await crypto.subtle.importKey("raw", copy(publicKey), { name: "Ed25519" }, false, ["verify"]);
          return crypto.subtle.verify({ name: "Ed25519" }, key, copy(signature), copy(message));
        },
      });
      return true;
    },
    passkey: (subject) => (coseKey, message, signature) => {
      queue.push({ what: subject, isValid: () => verifyPasskey(coseKey, message, signature) });
      return true;
    },
    async drain() {
      const faults: string[] = [];
      for (const { what, isValid } of queue)
        if (!(await isValid().catch(() => false))) faults.push(`the signature of ${what} is not valid`);
      queue = [];
      return faults;
    },
  };
}

async function verifyPasskey(coseKey: Uint8Array, message: Uint8Array, signature: Uint8Array): Promise<boolean> {
  const { algorithm, jwk } = parseCoseKey(coseKey);
  const parameters = {
    ES256: { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" },
    EdDSA: { name: "Ed25519" },
    RS256: { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" },
  }[algorithm];
  const key = await crypto.subtle.importKey("jwk", jwk, parameters, false, ["verify"]);
  const bytes = algorithm === "ES256" ? toRawSignature(signature) : signature;
  return crypto.subtle.verify(parameters, key, copy(bytes), copy(message));
}

/**
 * Converts an ECDSA signature from DER, which passkeys use, to two concatenated numbers, which WebCrypto expects.
 */
function toRawSignature(der: Uint8Array): Uint8Array {
  const raw = new Uint8Array(64);
  let at = 2;
  for (const end of [32, 64]) {
    const length = der[at + 1] as number;
    if (der[at] !== 2) throw new RangeError("the signature is not in DER");
    const number = der.subarray(at + 2, at + 2 + length);
    const digits = number[0] === 0 ? number.subarray(1) : number;
    raw.set(digits, end - digits.length);
    at += 2 + length;
  }
  return raw;
}

/** Copies the bytes, because WebCrypto rejects views of shared memory. */
function copy(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return new Uint8Array(bytes);
}
