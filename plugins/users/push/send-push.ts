/** Sends one notification to one device, through the push service of its browser. */
import { readFileSync } from "node:fs";
import type { CoreHost } from "../../../src/core.ts";
import { type WebhookResponse, post, type ResolveName } from "../../../src/plugin.ts";
import type { Options } from "../user-options.ts";
import { type DeviceAddress, removeDevice } from "./devices.ts";
import { encryptPushMessage } from "./encrypt-message.ts";
import { deriveSenderKey, senderHeader } from "./sender-key.ts";

const TIMEOUT_MS = 10_000;
/** Response statuses that mean that the subscription has ended. */
const ENDED_STATUSES = [404, 410];
/** Contact if none is configured and `public_url` is not an HTTPS address. */
const LOCAL_CONTACT = "mailto:assent@localhost";

export type PushOptions = NonNullable<Options["push"]>;

/** Response of one device's push service, or why there is none. */
export type PushOutcome =
  | { device: DeviceAddress; answer: WebhookResponse }
  | { device: DeviceAddress; error: unknown };

/** Sends a message with headers to a device. Never rejects. */
export type SendPush = (
  device: DeviceAddress,
  message: { text: Uint8Array; headers: Record<string, string> },
  signal: AbortSignal,
) => Promise<PushOutcome>;

/** @param resolve replaces DNS in tests */
export function createPushSender(host: CoreHost, options: PushOptions, resolve?: ResolveName): SendPush {
  const { allow_private: allowPrivate = false, tls_ca_file } = options;
  const ca = tls_ca_file === undefined ? undefined : readFileSync(tls_ca_file, "utf8");
  return async (device, { text, headers }, signal) => {
    try {
      const key = await deriveSenderKey(host.vault);
      const authorization = await senderHeader(key, device.url.origin, contactOf(host, options), Date.now());
      const body = await encryptPushMessage(text, device.keys);
      const target = { url: device.url, allowPrivate, timeoutMs: TIMEOUT_MS, ca };
      const sent = { ...PAYLOAD_HEADERS, ...headers, authorization };
      return { device, answer: await post(target, sent, body, signal, resolve) };
    } catch (error) {
      return { device, error };
    }
  };
}

const PAYLOAD_HEADERS = { "content-encoding": "aes128gcm", "content-type": "application/octet-stream" };

export const isAccepted = ({ status }: WebhookResponse): boolean => status >= 200 && status < 300;

/** Returns true if the subscription has ended, so that the device must be removed. */
export const isSubscriptionGone = (outcome: PushOutcome): boolean =>
  "answer" in outcome && ENDED_STATUSES.includes(outcome.answer.status);

/** Removes the devices of a user whose subscriptions have ended. */
export async function removeGoneDevices(
  host: CoreHost,
  userId: string,
  outcomes: readonly PushOutcome[],
): Promise<void> {
  const goneDevices = outcomes.filter(isSubscriptionGone);
  if (goneDevices.length === 0) return;
  await host.ledger.transact(async (tx) => {
    for (const { device } of goneDevices) await removeDevice(host, tx, userId, device.id);
  });
}

function contactOf({ config }: CoreHost, { contact }: PushOptions): string {
  const { public_url } = config.server;
  return contact ?? (public_url?.startsWith("https://") === true ? public_url : LOCAL_CONTACT);
}
