/** Computes when each channel sends a request for approval, with its reminders and escalations. */
import { parseRfc3339 } from "../../../src/plugin.ts";
import { type DecisionEntry, DELIVERY_RETRY_MS, REVIEW_DEADLINE_MS, shiftsBetween } from "../../../src/core.ts";
import { delayNotice, delayToDigest } from "./quiet-hours.ts";
import { type Channel, type ChannelRecipient, isMember, type Recipient } from "./channels.ts";
import {
  type DeliveryCause,
  mayNotify,
  type MessageSubject,
  type NewDelivery,
  createDelivery,
  type OutboxOptions,
  recipientKey,
  resolveRecipients,
} from "./new-delivery.ts";
import { missingChannelMessage, NO_NOTIFIER } from "../courier/notifier-calls.ts";
import type { NotifyingStage } from "./opened-stages.ts";

/** The subject of a request for approval. `decision` is null if a vote opened the next stage. */
type ApprovalRequest = Pick<DecisionEntry, "action_id" | "expires_at"> & {
  decision: Pick<DecisionEntry["decision"], "approval"> | null;
};
/** The deadline of the votes and the risk, which determine how long a notice can be delayed. */
export interface Urgency {
  expiresAt: number;
  risk: string | null;
}

export const computeRequestExpiry = ({ expires_at }: Pick<ApprovalRequest, "expires_at">, now: number): number =>
  parseRfc3339(expires_at ?? "") ?? now;

/**
 * Returns one request for each address of a person and each shared destination, even if it is in several channels, with
 * reminders and escalations.
 * @param isExcluded returns true for a person whose vote could not count. Such a person is not notified
 * @param urgencies urgencies of the actions of the request. The most urgent one determines when people are notified
 * @param earlier earlier deliveries, whose recipients are not notified again
 * @param stages stages that open now, or later if the earlier stages are not met
 */
export function buildApprovalRequests(
  options: OutboxOptions,
  entry: ApprovalRequest,
  cause: DeliveryCause,
  {
    subject,
    isExcluded,
    urgencies,
    earlier,
    stages,
  }: {
    subject: MessageSubject;
    isExcluded: (person: string) => boolean;
    urgencies: readonly Urgency[];
    earlier: readonly NewDelivery[];
    stages: readonly NotifyingStage[];
  },
): NewDelivery[] {
  const { channels } = options;
  const { now } = cause;
  const expiresAt = computeRequestExpiry(entry, now);
  // Machine reviewers answer first, so that people are not notified of actions that a machine resolves.
  const isReviewed = (entry.decision?.approval?.reviewers ?? []).some(({ name }) => options.reviewers.includes(name));
  const firstAt = isReviewed ? now + Math.min(REVIEW_DEADLINE_MS, Math.floor((expiresAt - now) / 4)) : now;
  const notified = new Set(earlier.map(({ notifier, recipient, person }) => recipientKey(notifier, recipient, person)));
  const people = { users: options.users(), groups: options.groups };
  const requestsOf = (channel: Channel, from: number): NewDelivery[] =>
    recipientsOf(options, channel, from, expiresAt).flatMap(({ recipient, at }) => {
      const key = recipientKey(recipient.notifier, recipient.to, recipient.person);
      if (notified.has(key) || !mayNotify(people, recipient, subject, true)) return [];
      if (recipient.person !== null && isExcluded(recipient.person)) return [];
      notified.add(key);
      return requestAndReminder(options, entry.action_id, cause, {
        channel,
        recipient,
        firstAt,
        at,
        expiresAt,
        urgencies,
      });
    });
  const names = [...new Set(entry.decision?.approval?.notify ?? [])];
  const direct = names.flatMap((name) => channels.get(name) ?? []);
  const deliveries = direct.flatMap((channel) => requestsOf(channel, firstAt));
  for (const { opensAt, notify } of stages.filter((stage) => stage.opensAt < expiresAt))
    for (const name of notify) {
      const channel = channels.get(name);
      if (channel === undefined) names.push(name);
      else deliveries.push(...requestsOf(channel, Math.max(firstAt, opensAt)));
    }
  for (const name of new Set(names))
    if (!channels.has(name)) deliveries.push(undeliverable(options, name, entry.action_id, cause));
  for (const { escalate } of direct) {
    const escalation = escalate === null ? undefined : channels.get(escalate.to);
    if (escalate !== null && escalation !== undefined && now + escalate.after < expiresAt)
      deliveries.push(...requestsOf(escalation, now + escalate.after));
  }
  return deliveries;
}

/**
 * Returns the recipients of a channel, each with the time of the message. If the channel has a rota, returns only the
 * people who are on call between `from` and `until`; someone whose shift starts later gets the message at the start of
 * the shift. Shared destinations always get it at `from`.
 */
function recipientsOf(
  options: OutboxOptions,
  { recipients, rota }: Channel,
  from: number,
  until: number,
): { recipient: Recipient; at: number }[] {
  const select = (at: number, isSelected: (recipient: ChannelRecipient) => boolean) =>
    resolveRecipients(options, recipients.filter(isSelected)).map((recipient) => ({ recipient, at }));
  if (rota === null) return select(from, () => true);
  const onCall = shiftsBetween(rota, from, until).flatMap((shift) =>
    select(Math.max(from, shift.from), (recipient) => isMember(recipient, shift.member)),
  );
  return [...select(from, ({ owner }) => owner === null), ...onCall];
}

function requestAndReminder(
  options: OutboxOptions,
  action_id: string,
  cause: DeliveryCause,
  {
    channel,
    recipient,
    firstAt,
    at: dueAt,
    expiresAt,
    urgencies,
  }: {
    channel: Channel;
    recipient: Recipient;
    /** Time of the messages to the first recipients. Later requests are escalations. */
    firstAt: number;
    at: number;
    expiresAt: number;
    urgencies: readonly Urgency[];
  },
): NewDelivery[] {
  const { now } = cause;
  const kind = dueAt > firstAt ? "approval_escalated" : "approval_requested";
  const at = Math.min(...urgencies.map((urgency) => computeNoticeTime(channel, { at: dueAt, ...urgency })));
  const request = { action_id, channel: channel.name };
  // Include the expiry of the approval, because the courier first sends the message with the earliest `give_up_at`.
  const giveUpAt = (from: number): number => Math.min(from + DELIVERY_RETRY_MS, expiresAt);
  const scheduled = (time: number): Partial<Omit<NewDelivery, "seal">> => ({
    ...request,
    state: "scheduled",
    next_at: time,
    give_up_at: giveUpAt(time),
  });
  const deliveries = [
    at > now
      ? createDelivery(options, kind, cause, recipient, scheduled(at))
      : createDelivery(options, kind, cause, recipient, { ...request, give_up_at: giveUpAt(now) }),
  ];
  const remindAt = channel.remindBefore === null ? null : expiresAt - channel.remindBefore;
  if (remindAt !== null && remindAt > at)
    deliveries.push(
      createDelivery(
        options,
        "approval_reminder",
        cause,
        recipient,
        scheduled(
          Math.min(...urgencies.map(({ risk }) => delayNotice(channel.quiet, { at: remindAt, expiresAt, risk }))),
        ),
      ),
    );
  return deliveries;
}

/**
 * Returns when a request is sent: after the quiet hours of the channel, and with its next digest. The delay is at most
 * half of the time to vote.
 */
export function computeNoticeTime(
  channel: Pick<Channel, "quiet" | "digest"> | null,
  notice: { at: number } & Urgency,
): number {
  if (channel === null) return notice.at;
  const { at, expiresAt } = notice;
  const afterQuiet = delayNotice(channel.quiet, notice);
  const inDigest = delayToDigest(channel.digest, { ...notice, at: afterQuiet });
  return inDigest - at > (expiresAt - at) / 2 ? afterQuiet : inDigest;
}

/**
 * Returns a failed delivery for a channel that is not configured, so that the list of deliveries displays the
 * misconfiguration.
 */
function undeliverable(options: OutboxOptions, name: string, action_id: string, cause: DeliveryCause): NewDelivery {
  return createDelivery(
    options,
    "approval_requested",
    cause,
    { notifier: NO_NOTIFIER, to: name, person: null },
    {
      action_id,
      channel: name,
      destination: `channel ${name}`,
      state: "dead",
      last_error: missingChannelMessage(name),
    },
  );
}
