/** Verifies that a request comes from Slack: HMAC-SHA256 over version, time and body under the app's signing secret. */
import { createHmac, timingSafeEqual } from "node:crypto";

/** A request that is older or newer is refused, so that a recorded one cannot be sent again later. Seconds. */
const MAX_AGE_SECONDS = 300;

/** Returns whether Slack signed the body. @param now in milliseconds */
export function isSignedBySlack(secret: string, headers: Headers, body: Uint8Array, now: number): boolean {
  const time = headers.get("x-slack-request-timestamp") ?? "";
  const signature = headers.get("x-slack-signature") ?? "";
  if (!/^\d{1,12}$/.test(time) || Math.abs(now / 1000 - Number(time)) > MAX_AGE_SECONDS) return false;
  const expected = Buffer.from(`v0=${createHmac("sha256", secret).update(`v0:${time}:`).update(body).digest("hex")}`);
  const given = Buffer.from(signature);
  return given.length === expected.length && timingSafeEqual(given, expected);
}
