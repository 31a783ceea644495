/** Signs webhooks as in Standard Webhooks 1.0.0, symmetric: HMAC-SHA256 over `id.timestamp.body`. */
import { createHmac } from "node:crypto";

const PREFIX = "whsec_";

/**
 * Returns the key in `whsec_<base64>` (24 to 64 bytes); null if the string does not have this form.
 * @example
 * const key = readSigningSecret("whsec_…");
 */
export function readSigningSecret(text: string): Uint8Array | null {
  if (!text.startsWith(PREFIX)) return null;
  const key = Buffer.from(text.slice(PREFIX.length), "base64");
  const canonical = key.toString("base64").replace(/=+$/, "") === text.slice(PREFIX.length).replace(/=+$/, "");
  return canonical && key.length >= 24 && key.length <= 64 ? key : null;
}

/**
 * Returns the three signature headers, with one signature for each key, because a receiver can have the old or the new
 * secret during a rotation.
 * @param timestamp the time of this attempt in seconds since 1970
 * @example
 * const headers = { ...signatureHeaders(keys, message.id, Math.floor(Date.now() / 1000), body) };
 */
export function signatureHeaders(
  keys: readonly Uint8Array[],
  id: string,
  timestamp: number,
  body: string,
): Record<string, string> {
  const sign = (key: Uint8Array): string =>
    `v1,${createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64")}`;
  return { "webhook-id": id, "webhook-timestamp": String(timestamp), "webhook-signature": keys.map(sign).join(" ") };
}
