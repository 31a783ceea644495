/** New rows of the outbox, and the identity of their recipients. */
import type { EntryBody, NoticeKind, Notifier } from "../../../src/plugin.ts";
import {
  canSee,
  type CoreHost,
  DELIVERY_RETRY_MS,
  type Rights,
  rightsOfUser,
  type RowSeals,
  userOfPrincipal,
  type Users,
} from "../../../src/core.ts";
import type { DeliveryKind, DeliveryRow } from "../../../src/storage/index.ts";
import { type Channel, type ChannelRecipient, type Recipient, resolveRecipient } from "./channels.ts";

/** A kind of notice, and the names of the channels that are notified. */
export interface NoticeChannels {
  kind: NoticeKind;
  channels: readonly string[];
}

export interface OutboxOptions {
  channels: ReadonlyMap<string, Channel>;
  notifiers: readonly Notifier[];
  /** Names of the configured machine reviewers. */
  reviewers: readonly string[];
  /** Returns the users as of the batch. */
  users(): Users;
  groups: CoreHost["groups"];
  /** The notices of features, each with the names of its channels. */
  notices: readonly NoticeChannels[];
  /** Names of the channels that are notified of emergency approvals. */
  breakGlass: readonly string[];
  newId(): string;
  /** Called within a batch. */
  seals(): RowSeals;
}

export type NewDelivery = Omit<DeliveryRow, "position">;

export type BatchEntries = readonly { seq: number; body: EntryBody }[];

/** The entry that causes a delivery: its sequence number and the time of its batch. */
export interface DeliveryCause {
  seq: number;
  now: number;
}

export function createDelivery(
  { newId, seals }: OutboxOptions,
  kind: DeliveryKind,
  { seq, now }: DeliveryCause,
  recipient: Recipient,
  values: Partial<Omit<NewDelivery, "seal">> = {},
): NewDelivery {
  const row: Omit<NewDelivery, "seal"> = {
    id: newId(),
    destination: destinationOf(recipient),
    notifier: recipient.notifier,
    recipient: recipient.to,
    kind,
    seq,
    action_id: null,
    person: recipient.person,
    channel: null,
    state: "waiting",
    attempts: 0,
    next_at: now,
    give_up_at: now + DELIVERY_RETRY_MS,
    last_error: null,
    reference: null,
    delivered_at: null,
    created_at: now,
    updated_at: now,
    ...values,
  };
  return { ...row, seal: seals().seal("deliveries", row) };
}

/** Returns the destination. The courier sends one message at a time to each destination. */
function destinationOf({ notifier, to }: Recipient): string {
  return `${notifier} ${to}`;
}

export const recipientKey = (notifier: string, to: string, person: string | null): string =>
  JSON.stringify([notifier, to, person]);

/** The agent, tool and owner of an action. */
export interface MessageSubject {
  agent_id: string;
  tool: string;
  /** Principal of the person behind the agent; null if there is none. */
  owner: string | null;
}

/**
 * Returns true if a message about the action can be sent to the recipient. A user must be active, and be allowed to see
 * the action. The person behind the agent can always be notified of it.
 * @param mayVote true for a request for approval, which only approvers receive
 */
export function mayNotify(
  { users, groups }: { users: Users; groups: CoreHost["groups"] },
  { person }: Pick<Recipient, "person">,
  { owner, ...action }: MessageSubject,
  mayVote: boolean,
): boolean {
  if (person === null) return true;
  const user = users.get(userOfPrincipal(person) ?? "");
  if (user === undefined || user.ended_at !== null) return false;
  const rights: Rights = rightsOfUser(user, groups, users);
  if (mayVote && !rights.hasScope("approvals:decide")) return false;
  return (!mayVote && person === owner) || canSee(rights.visibility, { ...action, submitted_by: null });
}

/**
 * Returns the recipients with their users. Omits those that refer to no active user.
 */
export function resolveRecipients(options: OutboxOptions, recipients: readonly ChannelRecipient[]): Recipient[] {
  return recipients.flatMap((recipient) => resolveRecipient(options.users(), recipient) ?? []);
}
