/** The channels that policies notify, as `assent.yaml` maps them to notifiers and people. */
import type { Notifier } from "../../../src/plugin.ts";
import {
  type Channels,
  ChannelError,
  type ChannelSettings,
  type MessengerParts,
  findReferredUser,
  findSimilarName,
  parseDuration,
  principalOfUser,
  REFERENCE_FORMS,
  referenceKey,
  type Rota,
  type Users,
  utcOffset,
} from "../../../src/core.ts";
import type { QuietHours } from "./quiet-hours.ts";

/**
 * A recipient of messages: a person, or a shared destination such as a chat channel. `to` is the address that the
 * notifier sends to.
 */
export interface Recipient {
  notifier: string;
  to: string;
  /** Principal of the user; null for a shared destination. */
  person: string | null;
}

/** A recipient of a channel as configured. `owner` refers to a user; null for a shared destination. */
export type ChannelRecipient = Omit<Recipient, "person"> & { owner: string | null };

export interface Channel {
  name: string;
  recipients: readonly ChannelRecipient[];
  /** Null notifies all people of the channel. A rota notifies only the people on call. */
  rota: Rota | null;
  /** How long before the expiry of the approval the reminder is sent, in milliseconds; null for no reminder. */
  remindBefore: number | null;
  escalate: { to: string; after: number } | null;
  /** Hours in which people are not notified of requests that can wait; null if there are no such hours. */
  quiet: QuietHours | null;
  /** Interval in which requests are collected into one message, in milliseconds; null sends each request by itself. */
  digest: number | null;
}

const LONE_SURROGATE = /\p{Cs}/u;

/** Returns the configured channels, keyed by name. Throws ChannelError for faults that the schema cannot express. */
export function readChannels(
  config: MessengerParts["channels"],
  notifiers: readonly Notifier[],
  rotas: ReadonlyMap<string, Rota> = new Map(),
): ReadonlyMap<string, Channel> {
  const byName = new Map(notifiers.map((notifier) => [notifier.name, notifier]));
  const channels = new Map<string, Channel>();
  for (const [name, given] of Object.entries(config)) {
    const recipient = (ownNotifier: string | undefined, to: string, owner: string | null): ChannelRecipient => {
      const notifier = ownNotifier ?? given.notifier;
      if (notifier === undefined)
        throw new ChannelError(name, `"${to}" has no notifier; set "notifier" for the channel or for this recipient`);
      const match = byName.get(notifier);
      if (match === undefined) {
        const suggestion = findSimilarName(notifier, [...byName.keys()]);
        throw new ChannelError(
          name,
          `there is no notifier "${notifier}"${suggestion === null ? (byName.size === 0 ? "; configure a notifier plugin, such as notify-email" : `; there are ${[...byName.keys()].join(", ")}`) : `; did you mean "${suggestion}"?`}`,
        );
      }
      if (LONE_SURROGATE.test(to))
        throw new ChannelError(name, "an address contains a lone surrogate, which cannot be stored");
      const fault = match.check?.(to, owner) ?? null;
      if (fault !== null) throw new ChannelError(name, fault);
      return { notifier, to, owner };
    };
    // The store rejects text with lone surrogates, so storing the notifications of this channel would fail, and so
    // would every decision that notifies it.
    if (LONE_SURROGATE.test(name))
      throw new ChannelError(name, "its name contains a lone surrogate, which cannot be stored");
    for (const { owner } of given.people ?? [])
      if (referenceKey(owner) === null)
        throw new ChannelError(name, `the owner "${owner}" identifies no one; give ${REFERENCE_FORMS}`);
    const recipients = [
      ...(given.people ?? []).map(({ notifier, owner, to = owner }) => recipient(notifier, to, owner)),
      ...(given.places ?? []).map(({ notifier, to }) => recipient(notifier, to, null)),
    ];
    if (recipients.length === 0) throw new ChannelError(name, "it has no recipients; add people or places");
    channels.set(name, {
      name,
      recipients,
      rota: given.rota === undefined ? null : findRota(name, given.rota, rotas, recipients),
      remindBefore: given.remind_before === undefined ? null : duration(name, "remind_before", given.remind_before),
      escalate:
        given.escalate === undefined
          ? null
          : { to: given.escalate.to, after: duration(name, "escalate.after", given.escalate.after) },
      quiet: given.quiet === undefined ? null : readQuietHours(name, given.quiet),
      digest: given.digest === undefined ? null : duration(name, "digest", given.digest),
    });
  }
  for (const { name, escalate } of channels.values()) {
    if (escalate !== null && !channels.has(escalate.to))
      throw new ChannelError(name, `it escalates to "${escalate.to}", but there is no such channel`);
  }
  return channels;
}

/**
 * Returns the channels that are notified of emergency approvals, or of a notice of a feature. Throws ChannelError for a
 * channel that is not configured.
 * @param key key in `assent.yaml` that lists the channels
 */
export function readNoticeChannels(
  key: string,
  named: readonly string[] | null,
  channels: ReadonlyMap<string, Channel>,
): readonly string[] {
  for (const name of named ?? [])
    if (!channels.has(name)) throw new ChannelError(name, `${key}.notify names it, but there is no such channel`);
  return named ?? [...channels.keys()];
}

/** Throws ChannelError if the rota does not exist, or if the channel has no address for a member of the rota. */
function findRota(
  channel: string,
  name: string,
  rotas: ReadonlyMap<string, Rota>,
  recipients: readonly ChannelRecipient[],
): Rota {
  const rota = rotas.get(name);
  if (rota === undefined) throw new ChannelError(channel, `there is no rota "${name}"`);
  const missing = rota.members.find((member) => !recipients.some((recipient) => isMember(recipient, member)));
  if (missing !== undefined)
    throw new ChannelError(
      channel,
      `the rota "${name}" has the member ${missing}, who is not among the people; list each member with the same reference`,
    );
  return rota;
}

function readQuietHours(
  channel: string,
  { from, until, time_zone: zone = "UTC", except = ["critical"] }: NonNullable<ChannelSettings["quiet"]>,
): QuietHours {
  if (from === until)
    throw new ChannelError(channel, `quiet: "from" and "until" are both ${from}; remove quiet, or change one`);
  try {
    utcOffset(zone, 0);
  } catch {
    throw new ChannelError(channel, `quiet: "${zone}" is not a time zone such as Europe/Berlin`);
  }
  return { from: timeOfDay(from), until: timeOfDay(until), zone, except };
}

/** @param text a time such as 22:30, already validated by the schema */
function timeOfDay(text: string): number {
  const [hours = 0, minutes = 0] = text.split(":").map(Number);
  return (hours * 60 + minutes) * 60_000;
}

function duration(channel: string, key: string, text: string): number {
  const ms = parseDuration(text);
  if (ms === null || ms < 1000)
    throw new ChannelError(channel, `${key}: "${text}" is not a duration of at least 1s, such as 30m, 1h or 7d`);
  return ms;
}

/**
 * Returns the channels that a decision can notify: the channels with these names, and the channels to which they
 * escalate.
 */
export function listReachableChannels(channels: ReadonlyMap<string, Channel>, named: readonly string[]): Channel[] {
  const direct = named.flatMap((name) => channels.get(name) ?? []);
  const escalations = direct.flatMap(({ escalate }) => (escalate === null ? [] : (channels.get(escalate.to) ?? [])));
  return [...new Set([...direct, ...escalations])];
}

/** Returns true if the recipient is this member of a rota. */
export function isMember({ owner }: ChannelRecipient, member: string): boolean {
  return owner !== null && referenceKey(owner) === referenceKey(member);
}

/** Returns the recipient with its user; null if the configuration refers to no active user. */
export function resolveRecipient(users: Users, { notifier, to, owner }: ChannelRecipient): Recipient | null {
  if (owner === null) return { notifier, to, person: null };
  const found = findReferredUser(users, owner);
  return "user" in found ? { notifier, to, person: principalOfUser(found.user.id) } : null;
}

export function createChannels(channels: ReadonlyMap<string, Channel>): Channels {
  const isOf = (recipient: ChannelRecipient, id: string, users: Users): boolean =>
    resolveRecipient(users, recipient)?.person === principalOfUser(id);
  return {
    names: () => [...channels.keys()],
    addressesOfUser: (named, id, users) =>
      listReachableChannels(channels, named).flatMap(({ recipients }) =>
        recipients.filter((recipient) => isOf(recipient, id, users)),
      ),
    channelsOfUser: (notifier, id, users) =>
      [...channels.values()]
        .filter(({ recipients }) =>
          recipients.some((recipient) => recipient.notifier === notifier && isOf(recipient, id, users)),
        )
        .map(({ name }) => name),
  };
}
