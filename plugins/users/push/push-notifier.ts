/** The notifier `notify-push`: notifies users on their own devices through the push services of their browsers. */
import { readFileSync } from "node:fs";
import { type CoreHost, sha256, toBase64Url, type User, utf8 } from "../../../src/core.ts";
import {
  type Answer,
  type Message,
  type Notifier,
  NotifierError,
  post,
  type Resolve,
  retryAfterMs,
} from "../../../src/plugin.ts";
import type { Options } from "../user-options.ts";
import { encodeNotice, buildNotice } from "./push-notice.ts";
import { encryptPushMessage } from "./encrypt-message.ts";
import { findRecipient } from "./push-recipient.ts";
import { deriveSenderKey, type SenderKey, senderHeader } from "./sender-key.ts";
import { type DeviceAddress, listDevices, openDevice, removeDevice } from "./devices.ts";

export const PUSH_NOTIFIER = "notify-push";
const TIMEOUT_MS = 10_000;
/**
 * Maximum time for which a push service keeps a message for a device that is off. Shorter if the request expires
 * earlier. Seconds.
 */
const KEEP_SECONDS = 86_400;
/** Response statuses that mean that the subscription has ended. */
const GONE = [404, 410];
/** Response statuses that a retry cannot change. */
const REFUSED = [400, 401, 403, 413];
/** Contact of a service whose address is not HTTPS and that therefore has no other contact. */
const LOCAL_CONTACT = "mailto:assent@localhost";

type PushOptions = NonNullable<Options["push"]>;

/** The response of a device's push service, or why there was none. */
type Outcome = { device: DeviceAddress; answer: Answer } | { device: DeviceAddress; error: unknown };

/** @param resolve replaces DNS in tests */
export function createPushNotifier(host: CoreHost, options: PushOptions, resolve?: Resolve): Notifier {
  const { allow_private: allowPrivate = false, tls_ca_file } = options;
  const ca = tls_ca_file === undefined ? undefined : readFileSync(tls_ca_file, "utf8");

  async function send(
    device: DeviceAddress,
    { text, headers, key }: { text: Uint8Array; headers: Record<string, string>; key: SenderKey },
    signal: AbortSignal,
  ): Promise<Outcome> {
    try {
      const authorization = await senderHeader(key, device.url.origin, contactOf(host, options), Date.now());
      const body = await encryptPushMessage(text, device.keys);
      const target = { url: device.url, allowPrivate, timeoutMs: TIMEOUT_MS, ca };
      return { device, answer: await post(target, { ...headers, authorization }, body, signal, resolve) };
    } catch (error) {
      return { device, error };
    }
  }

  return {
    name: PUSH_NOTIFIER,
    check(_to, person) {
      return person === null
        ? `${PUSH_NOTIFIER} notifies people on their own devices; list them under people, with owner`
        : null;
    },
    async deliver(message, signal) {
      if (message.kind === "event") throw new NotifierError(`${PUSH_NOTIFIER} has no feeds`, { permanent: true });
      const found = findRecipient(await host.users.list(), message.to);
      if ("fault" in found) throw new NotifierError(found.fault, { permanent: true });
      const { user } = found;
      const devices = await listDevices(host, user.id);
      const notice = buildNotice(message);
      const headers = messageHeaders(message, notice.tag, host.clock());
      const sent = { text: encodeNotice(notice), headers, key: await deriveSenderKey(host.vault) };
      const addresses = devices.flatMap((device) => openDevice(host, device) ?? []);
      const outcomes = await Promise.all(addresses.map((device) => send(device, sent, signal)));
      await removeGone(host, user, outcomes);
      judge(host, user, outcomes);
      // Return a reference, so that a channel with `digest` also reports the outcome of a request that was sent on its
      // own.
      return { reference: notice.tag };
    },
  };
}

/** Returns the headers of a message. The push service sees them, so they contain nothing about the request. */
function messageHeaders(
  message: Exclude<Message, { kind: "event" }>,
  tag: string,
  now: number,
): Record<string, string> {
  const expires = "others" in message ? message.action.expires_at : null;
  const left = expires === null ? KEEP_SECONDS : Math.max(0, Math.floor((Date.parse(expires) - now) / 1000));
  return {
    "content-encoding": "aes128gcm",
    "content-type": "application/octet-stream",
    ttl: String(Math.min(left, KEEP_SECONDS)),
    urgency: message.kind === "approval_closed" ? "normal" : "high",
    // A later message about the same request replaces an earlier one that was not delivered yet.
    topic: toBase64Url(sha256(utf8(tag))).slice(0, 32),
  };
}

function contactOf({ config }: CoreHost, { contact }: PushOptions): string {
  const { public_url } = config.server;
  return contact ?? (public_url?.startsWith("https://") === true ? public_url : LOCAL_CONTACT);
}

async function removeGone(host: CoreHost, user: User, outcomes: readonly Outcome[]): Promise<void> {
  const gone = outcomes.filter((outcome) => "answer" in outcome && GONE.includes(outcome.answer.status));
  if (gone.length === 0) return;
  await host.ledger.transact(async (tx) => {
    for (const { device } of gone) await removeDevice(host, tx, user.id, device.id);
  });
}

/**
 * Throws NotifierError if no device was notified. Does not throw if only some were notified, because each retry would
 * notify those again.
 */
function judge(host: CoreHost, user: User, outcomes: readonly Outcome[]): void {
  const failures = outcomes.flatMap((outcome) => describeFailure(outcome) ?? []);
  const isReached = outcomes.some((outcome) => "answer" in outcome && isAccepted(outcome.answer));
  if (isReached) {
    for (const { text } of failures) host.log.warn("a device was not notified", { user: user.id, error: text });
    return;
  }
  if (failures.length === 0)
    throw new NotifierError(
      `${user.name} has no device with notifications; they can turn them on in the console, on their own page`,
      { permanent: true },
    );
  const delays = failures.flatMap(({ retryAfterMs }) => retryAfterMs ?? []);
  throw new NotifierError(failures.map(({ text }) => text).join("; "), {
    permanent: failures.every(({ permanent }) => permanent),
    retryAfterMs: delays.length === 0 ? null : Math.max(...delays),
  });
}

const isAccepted = ({ status }: Answer): boolean => status >= 200 && status < 300;

/** Returns why a device was not notified; null if it was, or if its subscription has ended. */
function describeFailure(outcome: Outcome): { text: string; permanent: boolean; retryAfterMs: number | null } | null {
  const { host } = outcome.device.url;
  if ("error" in outcome) {
    const { error } = outcome;
    const text = error instanceof Error ? error.message : String(error);
    return { text, permanent: error instanceof NotifierError && error.permanent, retryAfterMs: null };
  }
  const { status, retryAfter } = outcome.answer;
  if (isAccepted(outcome.answer) || GONE.includes(status)) return null;
  return {
    text: `${host} responded with status ${status}`,
    permanent: REFUSED.includes(status),
    retryAfterMs: retryAfterMs(retryAfter),
  };
}
