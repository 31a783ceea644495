/** Channels of policies, as `assent.yaml` maps them to notifiers and people. */
import type { Config } from "../config/index.ts";
import type { Notifier } from "../contract/notifier.ts";
import type { Channels } from "../contract/core-host.ts";
import { isValidOwner, ownerIdentity } from "../domain/owner.ts";
import { suggest } from "../domain/suggest.ts";
import { parseDuration } from "../domain/time.ts";

/** Somebody, or a place that several people see, and how to reach them. */
export interface Recipient {
  notifier: string;
  to: string;
  /** Owner; null for a place. */
  person: string | null;
}

export interface Channel {
  name: string;
  recipients: readonly Recipient[];
  /** Before the approval expires. Milliseconds; null: no reminder. */
  remindBefore: number | null;
  escalate: { to: string; after: number } | null;
}

export class ChannelError extends Error {
  constructor(channel: string, message: string) {
    super(`assent.yaml: /channels/${channel}: ${message}`);
    this.name = "ChannelError";
  }
}

const HALF_PAIR = /\p{Cs}/u;

/** Throws ChannelError for what the schema cannot say. */
export function readChannels(config: Config["channels"], notifiers: readonly Notifier[]): ReadonlyMap<string, Channel> {
  const byName = new Map(notifiers.map((notifier) => [notifier.name, notifier]));
  const channels = new Map<string, Channel>();
  for (const [name, given] of Object.entries(config)) {
    const recipient = (own: string | undefined, to: string, person: string | null): Recipient => {
      const notifier = own ?? given.notifier;
      if (notifier === undefined)
        throw new ChannelError(
          name,
          `nothing says how to reach "${to}"; name a notifier for the channel or for this one`,
        );
      const match = byName.get(notifier);
      if (match === undefined) {
        const meant = suggest(notifier, [...byName.keys()]);
        throw new ChannelError(
          name,
          `there is no notifier "${notifier}"${meant === null ? (byName.size === 0 ? "; configure a notifier plugin, such as notify-email" : `; there are ${[...byName.keys()].join(", ")}`) : `; did you mean "${meant}"?`}`,
        );
      }
      if (HALF_PAIR.test(to))
        throw new ChannelError(name, "an address holds half of a surrogate pair, which no store keeps");
      const fault = match.check?.(to, person) ?? null;
      if (fault !== null) throw new ChannelError(name, fault);
      return { notifier, to, person };
    };
    // Else each decision that asks would fail with its batch.
    if (HALF_PAIR.test(name))
      throw new ChannelError(name, "its name holds half of a surrogate pair, which no store keeps");
    for (const { owner } of given.people ?? [])
      if (!isValidOwner(owner) || HALF_PAIR.test(owner))
        throw new ChannelError(name, `"${owner}" cannot name a person`);
    const recipients = [
      ...(given.people ?? []).map((one) => recipient(one.notifier, one.to, one.owner)),
      ...(given.places ?? []).map((one) => recipient(one.notifier, one.to, null)),
    ];
    if (recipients.length === 0) throw new ChannelError(name, "it names nobody; give it people or places");
    channels.set(name, {
      name,
      recipients,
      remindBefore: given.remind_before === undefined ? null : duration(name, "remind_before", given.remind_before),
      escalate:
        given.escalate === undefined
          ? null
          : { to: given.escalate.to, after: duration(name, "escalate.after", given.escalate.after) },
    });
  }
  for (const { name, escalate } of channels.values()) {
    if (escalate !== null && !channels.has(escalate.to))
      throw new ChannelError(name, `it escalates to "${escalate.to}", and there is no such channel`);
  }
  return channels;
}

/** Throws ChannelError for a channel that is not configured. */
export function stopChannelNames(named: Config["stop"]["notify"], channels: ReadonlyMap<string, Channel>): string[] {
  for (const name of named ?? [])
    if (!channels.has(name)) throw new ChannelError(name, "stop.notify names it, and there is no such channel");
  return named ?? [...channels.keys()];
}

function duration(channel: string, key: string, text: string): number {
  const ms = parseDuration(text);
  if (ms === null || ms < 1000)
    throw new ChannelError(channel, `${key}: "${text}" is not a duration of at least 1s, such as 30m, 1h or 7d`);
  return ms;
}

/** The channels that a decision tells sooner or later: those the policy named, and where they escalate to. */
export function reachableChannels(channels: ReadonlyMap<string, Channel>, named: readonly string[]): Channel[] {
  const direct = named.flatMap((name) => channels.get(name) ?? []);
  const further = direct.flatMap(({ escalate }) => (escalate === null ? [] : (channels.get(escalate.to) ?? [])));
  return [...new Set([...direct, ...further])];
}

export function createChannels(channels: () => ReadonlyMap<string, Channel>): Channels {
  return {
    names: () => [...channels().keys()],
    notifiesPerson(named, owner) {
      const identity = ownerIdentity(owner);
      return reachableChannels(channels(), named).some(({ recipients }) =>
        recipients.some(({ person }) => person !== null && ownerIdentity(person) === identity),
      );
    },
  };
}
