/** Notices of features, emergency approvals and unknown outcomes. */
import type { DeliveryKind, StorageTransaction } from "../contract/storage.ts";
import type { BreakGlassEntry, EntryBody, ExecutionEntry } from "../domain/entries.ts";
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
import { genuineDeliveriesOfAction } from "./genuine-deliveries.ts";

/** Returns the notices that an entry causes, except requests for approval. */
export async function createEntryNotices(
  options: OutboxOptions,
  tx: StorageTransaction,
  body: EntryBody,
  cause: DeliveryCause,
): Promise<NewDelivery[]> {
  const action_id = "action_id" in body ? body.action_id : null;
  const subject = action_id === null ? null : await tx.action(action_id);
  const about = subject === null ? null : { id: subject.id, subject: { ...subject, owner: subject.submitted_owner } };
  const ofFeatures = options.notices
    .filter(({ kind }) => kind.entry === body.type && kind.isDue?.(body) !== false)
    .flatMap(({ kind, channels }) =>
      kind.person === undefined
        ? noticesTo(channels, options, kind.name, cause, about)
        : noticesToPerson(options, kind.name, kind.person(body), cause, action_id),
    );
  if (ofFeatures.length > 0) return ofFeatures;
  switch (body.type) {
    case "break_glass":
      return body.change === "used" ? breakGlassNotices(options, tx, body, cause) : [];
    case "execution":
      return body.status === "unknown" ? unknownOutcomeNotices(options, tx, body, cause) : [];
    default:
      return [];
  }
}

/**
 * Returns notices for the channels in the configuration, for every channel that was notified of the request, and for
 * the person behind the agent. Each address gets one notice.
 */
async function breakGlassNotices(
  options: OutboxOptions,
  tx: StorageTransaction,
  { related_action, agent_id, use: { tool } }: BreakGlassEntry,
  cause: DeliveryCause,
): Promise<NewDelivery[]> {
  const notified = (await genuineDeliveriesOfAction(options.seals(), tx, related_action)).flatMap(
    ({ channel }) => channel ?? [],
  );
  const owner = (await tx.action(related_action))?.submitted_owner ?? null;
  const notices = [
    ...noticesTo([...options.breakGlass, ...notified], options, "break_glass", cause, {
      id: related_action,
      subject: { agent_id, tool, owner },
    }),
    ...noticesToPerson(options, "break_glass", owner, cause, related_action),
  ];
  const keys = notices.map(({ notifier, recipient, person }) => recipientKey(notifier, recipient, person));
  return notices.filter((_, i) => keys.indexOf(keys[i] as string) === i);
}

/**
 * Returns one notice for each recipient of the channels, even if a recipient is in several of them. Omits people who may
 * not see the action.
 */
function noticesTo(
  names: readonly string[],
  options: OutboxOptions,
  kind: DeliveryKind,
  cause: DeliveryCause,
  about: { id: string; subject: MessageSubject } | null = null,
): NewDelivery[] {
  const people = { users: options.users(), groups: options.groups };
  const values = { action_id: about?.id ?? null };
  const notices = new Map<string, NewDelivery>();
  for (const channel of names.flatMap((name) => options.channels.get(name) ?? []))
    for (const recipient of resolveRecipients(options, channel.recipients)) {
      if (about !== null && !mayNotify(people, recipient, about.subject, false)) continue;
      const key = recipientKey(recipient.notifier, recipient.to, recipient.person);
      if (!notices.has(key))
        notices.set(key, createDelivery(options, kind, cause, recipient, { ...values, channel: channel.name }));
    }
  return [...notices.values()];
}

async function unknownOutcomeNotices(
  options: OutboxOptions,
  tx: StorageTransaction,
  { action_id }: ExecutionEntry,
  cause: DeliveryCause,
): Promise<NewDelivery[]> {
  const owner = (await tx.action(action_id))?.submitted_owner ?? null;
  return noticesToPerson(options, "outcome_unknown", owner, cause, action_id);
}

/** Returns one notice for each address of a person, in any channel. */
function noticesToPerson(
  options: OutboxOptions,
  kind: DeliveryKind,
  owner: string | null,
  cause: DeliveryCause,
  action_id: string | null,
): NewDelivery[] {
  if (owner === null) return [];
  const notices = new Map<string, NewDelivery>();
  for (const channel of options.channels.values())
    for (const recipient of resolveRecipients(options, channel.recipients)) {
      if (recipient.person !== owner) continue;
      const key = recipientKey(recipient.notifier, recipient.to, recipient.person);
      if (!notices.has(key))
        notices.set(key, createDelivery(options, kind, cause, recipient, { action_id, channel: channel.name }));
    }
  return [...notices.values()];
}
