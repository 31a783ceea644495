/**
 * The key pair with which the service identifies itself to push services (VAPID, RFC 8292). Browsers bind a
 * subscription to its public key. The key pair is derived from the service's secret, so all processes have the same key
 * pair and do not store it. After the secret is replaced, people have to turn notifications on again.
 */
import { createECDH } from "node:crypto";
import { type CoreHost, toBase64Url, utf8 } from "../../../src/core.ts";

const { subtle } = globalThis.crypto;
const COORDINATE_BYTES = 32;
/** Lifetime of the signed header. Push services accept at most 24 hours. Seconds. */
const VALID_SECONDS = 12 * 3600;

interface SenderKey {
  /** Uncompressed point in base64url, the `applicationServerKey` of browsers. */
  publicKey: string;
  privateKey: CryptoKey;
}

/** Returns the service's key pair. */
export async function deriveSenderKey(vault: Pick<CoreHost["vault"], "mac">): Promise<SenderKey> {
  const { point, scalar } = derivePoint(vault);
  const jwk = {
    kty: "EC",
    crv: "P-256",
    x: toBase64Url(point.subarray(1, 1 + COORDINATE_BYTES)),
    y: toBase64Url(point.subarray(1 + COORDINATE_BYTES)),
    d: toBase64Url(scalar),
  };
  const privateKey = await subtle.importKey("jwk", jwk, { name: "ECDSA", namedCurve: "P-256" }, false, ["sign"]);
  return { publicKey: toBase64Url(point), privateKey };
}

/**
 * Returns the header `Authorization` of a request to a push service.
 * @param origin origin of the subscription's endpoint
 * @param subject contact for the push service: `mailto:` or `https://`
 * @param now milliseconds since the epoch
 */
export async function senderHeader(
  { publicKey, privateKey }: SenderKey,
  origin: string,
  subject: string,
  now: number,
): Promise<string> {
  const claims = { aud: origin, exp: Math.floor(now / 1000) + VALID_SECONDS, sub: subject };
  const parts = [{ typ: "JWT", alg: "ES256" }, claims].map((part) => toBase64Url(utf8(JSON.stringify(part))));
  const signed = parts.join(".");
  const algorithm = { name: "ECDSA", hash: "SHA-256" };
  const signature = await subtle.sign(algorithm, privateKey, new Uint8Array(utf8(signed)));
  return `vapid t=${signed}.${toBase64Url(new Uint8Array(signature))}, k=${publicKey}`;
}

function derivePoint(vault: Pick<CoreHost["vault"], "mac">): { point: Uint8Array; scalar: Uint8Array } {
  for (let attempt = 0; ; attempt++) {
    const scalar = vault.mac("users/push-sender", Uint8Array.of(attempt));
    const pair = createECDH("prime256v1");
    try {
      pair.setPrivateKey(scalar);
    } catch {
      // Skip a number that is not below the order of the curve. This happens for one in 2^32 secrets.
      continue;
    }
    return { point: new Uint8Array(pair.getPublicKey()), scalar };
  }
}
