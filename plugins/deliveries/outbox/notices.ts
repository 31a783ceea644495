/** Creates notices: those of features, of approvals by one person alone, and of unknown outcomes. */
import type { EntryBody } from "../../../src/plugin.ts";
import type { DeliveryKind, StorageTransaction } from "../../../src/storage/index.ts";
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

/** The action that a notice is about. */
interface NoticeSubject {
  id: string;
  subject: MessageSubject;
}

/** Returns the notices that an entry causes, except requests for approval. */
export async function createEntryNotices(
  options: OutboxOptions,
  tx: StorageTransaction,
  body: EntryBody,
  cause: DeliveryCause,
): Promise<NewDelivery[]> {
  const action_id = "action_id" in body ? body.action_id : null;
  const subject = action_id === null ? null : await tx.action(action_id);
  const action = subject === null ? null : { id: subject.id, subject: { ...subject, owner: subject.submitted_owner } };
  const ofFeatures = options.notices
    .filter(({ kind }) => kind.entry === body.type && kind.isDue?.(body) !== false)
    .flatMap(({ kind, channels }) =>
      kind.person === undefined
        ? noticesTo(channels, options, kind.name, cause, action)
        : noticesToPerson(options, kind.name, kind.person(body), cause, action_id),
    );
  if (ofFeatures.length > 0) return ofFeatures;
  switch (body.type) {
    case "approval":
      return body.break_glass && action !== null ? soleApprovalNotices(options, tx, action, cause) : [];
    case "execution":
      return body.status === "unknown"
        ? noticesToPerson(options, "outcome_unknown", action?.subject.owner ?? null, cause, action_id)
        : [];
    default:
      return [];
  }
}

/**
 * Returns notices of an approval without other approvers: for the channels in the configuration, for every channel that
 * was notified of the request, and for the person behind the agent. Each address gets one notice.
 */
async function soleApprovalNotices(
  options: OutboxOptions,
  tx: StorageTransaction,
  subjectOfNotice: NoticeSubject,
  cause: DeliveryCause,
): Promise<NewDelivery[]> {
  const deliveries = await genuineDeliveriesOfAction(options.seals(), tx, subjectOfNotice.id);
  const notified = deliveries.flatMap(({ channel }) => channel ?? []);
  const notices = [
    ...noticesTo([...options.breakGlass, ...notified], options, "break_glass", cause, subjectOfNotice),
    ...noticesToPerson(options, "break_glass", subjectOfNotice.subject.owner, cause, subjectOfNotice.id),
  ];
  const keys = notices.map(({ notifier, recipient, person }) => recipientKey(notifier, recipient, person));
  return notices.filter((_, i) => keys.indexOf(keys[i] as string) === i);
}

/**
 * Returns one notice for each recipient, even if a recipient is in several channels. Omits people who cannot see the
 * action.
 */
function noticesTo(
  names: readonly string[],
  options: OutboxOptions,
  kind: DeliveryKind,
  cause: DeliveryCause,
  subjectOfNotice: NoticeSubject | null = null,
): NewDelivery[] {
  const people = { users: options.users(), groups: options.groups };
  const values = { action_id: subjectOfNotice?.id ?? null };
  const notices = new Map<string, NewDelivery>();
  for (const channel of names.flatMap((name) => options.channels.get(name) ?? []))
    for (const recipient of resolveRecipients(options, channel.recipients)) {
      if (subjectOfNotice !== null && !mayNotify(people, recipient, subjectOfNotice.subject, false)) continue;
      const key = recipientKey(recipient.notifier, recipient.to, recipient.person);
      if (!notices.has(key))
        notices.set(key, createDelivery(options, kind, cause, recipient, { ...values, channel: channel.name }));
    }
  return [...notices.values()];
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
