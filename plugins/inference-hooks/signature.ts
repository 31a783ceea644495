/** Verifies that a request was signed according to Standard Webhooks 1.0.0: HMAC-SHA256 over `id.timestamp.body`. */
import { createHmac } from "node:crypto";
import { equalSecrets } from "../../src/plugin.ts";

/** Maximum difference between the signed time and this machine's time, in both directions. Seconds. */
export const MAX_SKEW_SECONDS = 300;

export interface SignedFacts {
  id: string;
  /** Signed time in seconds since the epoch. */
  timestamp: number;
}

/**
 * Returns the signed id and time; or why the request is not accepted.
 * @param keys the current key, and during a rotation also the previous key
 * @param now milliseconds since the epoch
 */
export function verifySignature(
  keys: readonly Uint8Array[],
  headers: Headers,
  body: Uint8Array,
  now: number,
): SignedFacts | string {
  const id = headers.get("webhook-id") ?? "";
  const timestamp = headers.get("webhook-timestamp") ?? "";
  const signatures = (headers.get("webhook-signature") ?? "").split(" ");
  if (id === "" || id.length > 256 || !/^\d{1,12}$/.test(timestamp)) return "the request is not signed";
  const skew = Math.round(Number(timestamp) - now / 1000);
  if (Math.abs(skew) > MAX_SKEW_SECONDS)
    return `the signed time differs from this machine's time by ${skew} s; at most ${MAX_SKEW_SECONDS} s are accepted`;
  const isSigned = keys.some((key) => {
    const mac = `v1,${createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest("base64")}`;
    return signatures.some((signature) => equalSecrets(signature, mac));
  });
  return isSigned ? { id, timestamp: Number(timestamp) } : "no signature matches a secret of this service";
}
