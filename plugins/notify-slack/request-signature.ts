/** Verifies that a request comes from Slack: HMAC-SHA256 over version, time and body under the app's signing secret. */
import { createHmac } from "node:crypto";
import { equalSecrets } from "../../src/plugin.ts";

/**
 * Maximum difference between a request's time and the current time, so that a recorded request cannot be replayed
 * later. Seconds.
 */
const MAX_AGE_SECONDS = 300;

/**
 * Returns true if Slack signed the body.
 * @param now milliseconds since the epoch
 */
export function isSignedBySlack(secret: string, headers: Headers, body: Uint8Array, now: number): boolean {
  const time = headers.get("x-slack-request-timestamp") ?? "";
  const signature = headers.get("x-slack-signature") ?? "";
  if (!/^\d{1,12}$/.test(time) || Math.abs(now / 1000 - Number(time)) > MAX_AGE_SECONDS) return false;
  const mac = createHmac("sha256", secret).update(`v0:${time}:`).update(body).digest("hex");
  return equalSecrets(signature, `v0=${mac}`);
}
