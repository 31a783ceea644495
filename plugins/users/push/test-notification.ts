/** Sends a test notification to one of the user's own devices, and reports how the push service responded. */
import type { CoreHost, LedgerTransaction } from "../../../src/core.ts";
import { type Credential, Refusal } from "../../../src/plugin.ts";
import { requireSession } from "../user-changes.ts";
import { ERRORS } from "../user-errors.ts";
import { findDevice, openDevice } from "./devices.ts";
import { encodeNotice } from "./push-notice.ts";
import { isAccepted, isSubscriptionGone, type PushOutcome, removeGoneDevices, type SendPush } from "./send-push.ts";

/** Maximum number of test notifications of one user per window. Counted in the store, so for all processes together. */
const MAX_TESTS = 5;
const WINDOW_MS = 60_000;
/** How long a push service stores a test for a device that is off. Seconds. */
const KEEP_SECONDS = 60;
/** Maximum number of characters to quote from the push service's response. */
const MAX_REASON = 200;

interface TestOutcome {
  /**
   * `accepted`: the push service accepted the message. `ended`: the subscription has ended, and the device was removed.
   */
  outcome: "accepted" | "refused" | "ended" | "unreachable";
  /** Status of the push service's response; null if there was none. */
  status: number | null;
  /** Why the message was not accepted; null if it was accepted. */
  reason: string | null;
}

/**
 * Sends a test notification to a device of the signed-in user. Throws USERS_DEVICE_NOT_FOUND if the user has no such
 * device, and RATE_LIMITED after too many tests.
 */
export async function sendTest(
  host: CoreHost,
  { credential, id, signal }: { credential: Credential; id: string; signal: AbortSignal },
  send: SendPush,
  showsReason: boolean,
): Promise<TestOutcome> {
  const { user, device } = await host.ledger.transact(async (tx) => {
    const { user } = requireSession(await tx.confirm(credential));
    const device = await findDevice(host, tx, user.id, id);
    if (device === null)
      throw new Refusal(ERRORS.DEVICE_NOT_FOUND, `you are not notified on a device ${id.slice(0, 64)}`);
    await countTest(host, tx, user.id);
    return { user, device };
  });
  const address = openDevice(host, device);
  if (address === null)
    return {
      outcome: "refused",
      status: null,
      reason: "its address was encrypted under another secret of the service",
    };
  const notice = {
    title: "Test notification",
    body: "Notifications of Assent arrive on this device.",
    path: `/#/people/${encodeURIComponent(`user:${user.id}`)}`,
    tag: `test:${id}`,
    silent: false,
  };
  const headers = { ttl: String(KEEP_SECONDS), urgency: "high" };
  const outcome = await send(address, { text: encodeNotice(notice), headers }, signal);
  await removeGoneDevices(host, user.id, [outcome]);
  if ("error" in outcome) host.log.warn("a test notification was not sent", { error: String(outcome.error) });
  return describeOutcome(outcome, showsReason);
}

async function countTest(host: CoreHost, tx: LedgerTransaction, userId: string): Promise<void> {
  const documents = host.documents.within(tx);
  const key = `push-tests/${userId}`;
  const before = await documents.get(key);
  const counted = (before?.value ?? { since: 0, tests: 0 }) as { since: number; tests: number };
  const isCurrent = tx.now - counted.since < WINDOW_MS;
  if (isCurrent && counted.tests >= MAX_TESTS) {
    const wait = Math.ceil((counted.since + WINDOW_MS - tx.now) / 1000);
    throw new Refusal("RATE_LIMITED", `you sent ${MAX_TESTS} test notifications within a minute; wait ${wait} s`, {
      headers: { "Retry-After": String(wait) },
    });
  }
  const { since, tests } = isCurrent ? counted : { since: tx.now, tests: 0 };
  await documents.put(key, { since, tests: tests + 1 }, before?.version ?? null);
}

/**
 * Returns the outcome to display to the user. Omits errors of the connection, because they would reveal details of the
 * service's network.
 * @param showsReason whether to quote the push service's response
 * @example
 * describeOutcome({ device, answer: { status: 403, retryAfter: undefined, body: "wrong key" } }, true).outcome; // "refused"
 */
export function describeOutcome(outcome: PushOutcome, showsReason: boolean): TestOutcome {
  const { host: service } = outcome.device.url;
  if ("error" in outcome) {
    // Use one message for all errors. Different messages would reveal which names exist in the private network.
    const reason = `${service} is not at a public address, or could not be reached`;
    return { outcome: "unreachable", status: null, reason };
  }
  const { status, body } = outcome.answer;
  if (isAccepted(outcome.answer)) return { outcome: "accepted", status, reason: null };
  const words = showsReason ? (body ?? "").replaceAll(/\s+/g, " ").trim().slice(0, MAX_REASON) : "";
  const reason = `${service} answered ${status}${words === "" ? "" : `: ${words}`}`;
  return { outcome: isSubscriptionGone(outcome) ? "ended" : "refused", status, reason };
}
