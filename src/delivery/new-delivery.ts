/** New rows of the outbox, and the identity of their recipients. */
import type { Keys } from "../contract/core-host.ts";
import { DELIVERY_RETRY_MS, type Notifier } from "../contract/notifier.ts";
import type { RowSeals } from "../contract/row-seals.ts";
import type { DeliveryKind, DeliveryRow } from "../contract/storage.ts";
import type { EntryBody } from "../domain/entries.ts";
import { principalOfOwner } from "../domain/owner.ts";
import type { Channel, Recipient } from "./channels.ts";

export interface OutboxOptions {
  channels: ReadonlyMap<string, Channel>;
  notifiers: readonly Notifier[];
  /** Names of the configured machine reviewers. */
  reviewers: readonly string[];
  /** Called within a batch. */
  people(): Pick<Keys, "samePersonPrincipals" | "isEndedOwner">;
  /** Names of the channels that are notified of stops. */
  stops: readonly string[];
  /** Names of the channels that are notified of emergency approvals. */
  breakGlass: readonly string[];
  /** Names of the channels that are notified of gaps in coverage. */
  coverage: readonly string[];
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

/** Returns true if both names can belong to one person. Considers every name that a user has had. */
export function isSamePerson({ people }: OutboxOptions, a: string, b: string): boolean {
  const other = people().samePersonPrincipals(principalOfOwner(b));
  return people()
    .samePersonPrincipals(principalOfOwner(a))
    .some((principal) => other.includes(principal));
}

/** Returns true if the recipient is a deactivated user. These users are not notified. */
export function isDeactivatedUser({ people }: OutboxOptions, { person }: Recipient): boolean {
  return person !== null && people().isEndedOwner(person);
}
