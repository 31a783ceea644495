/** The notifier `notify-push`: notifies users on their own devices through the push services of their browsers. */
import { userState, type CoreHost, sha256, toBase64Url, type User, userOfPrincipal, utf8 } from "../../../src/core.ts";
import { type Message, type Notifier, NotifierError, retryAfterMs } from "../../../src/plugin.ts";
import { listDevices, openDevice } from "./devices.ts";
import { buildNotice, encodeNotice } from "./push-notice.ts";
import { isAccepted, isSubscriptionGone, type PushOutcome, removeGoneDevices, type SendPush } from "./send-push.ts";

export const PUSH_NOTIFIER = "notify-push";
/** How long a push service stores a message for a device that is off, unless the request expires earlier. Seconds. */
const KEEP_SECONDS = 86_400;
/** Response statuses that a retry cannot change. */
const REFUSED = [400, 401, 403, 413];

export function createPushNotifier(host: CoreHost, send: SendPush): Notifier {
  return {
    name: PUSH_NOTIFIER,
    check(_to, owner) {
      return owner === null
        ? `${PUSH_NOTIFIER} notifies people on their own devices; list them under people, with owner`
        : null;
    },
    async deliver(message, signal) {
      if (message.kind === "event") throw new NotifierError(`${PUSH_NOTIFIER} has no feeds`, { permanent: true });
      const user = (await host.state(userState)).get(userOfPrincipal(message.person) ?? "");
      if (user === undefined || user.ended_at !== null)
        throw new NotifierError(`${message.person ?? message.to} is not an active user`, { permanent: true });
      const devices = await listDevices(host, user.id);
      const notice = buildNotice(message);
      const sent = { text: encodeNotice(notice), headers: messageHeaders(message, notice.tag, host.clock()) };
      const addresses = devices.flatMap((device) => openDevice(host, device) ?? []);
      const outcomes = await Promise.all(addresses.map((device) => send(device, sent, signal)));
      await removeGoneDevices(host, user.id, outcomes);
      judge(host, user, outcomes);
      // Return a reference, so that a channel with `digest` also reports the outcome of a request that was sent
      // individually.
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
    ttl: String(Math.min(left, KEEP_SECONDS)),
    urgency: message.kind === "approval_closed" ? "normal" : "high",
    // A later message about the same request replaces an earlier one that was not delivered yet.
    topic: toBase64Url(sha256(utf8(tag))).slice(0, 32),
  };
}

/**
 * Throws NotifierError if no device was notified. If at least one device was notified, only logs the failures of others,
 * because each retry would notify that device again.
 */
function judge(host: CoreHost, user: User, outcomes: readonly PushOutcome[]): void {
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

/** Returns null for a device that was reached, or whose subscription has ended. */
function describeFailure(
  outcome: PushOutcome,
): { text: string; permanent: boolean; retryAfterMs: number | null } | null {
  const { host } = outcome.device.url;
  if ("error" in outcome) {
    const { error } = outcome;
    const text = error instanceof Error ? error.message : String(error);
    return { text, permanent: error instanceof NotifierError && error.permanent, retryAfterMs: null };
  }
  const { status, retryAfter } = outcome.answer;
  if (isAccepted(outcome.answer) || isSubscriptionGone(outcome)) return null;
  return {
    text: `${host} responded with status ${status}`,
    permanent: REFUSED.includes(status),
    retryAfterMs: retryAfterMs(retryAfter),
  };
}
