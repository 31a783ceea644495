/** Creates the messenger: the outbox, and the courier that empties it. */
import { type CoreHost, type Messenger, type MessengerParts } from "../../src/core.ts";
import { createCourier, type Courier } from "./courier/courier.ts";
import { createMessageBuilder } from "./courier/message.ts";
import { createChannels, readChannels, readNoticeChannels } from "./outbox/channels.ts";
import { createOutbox } from "./outbox/outbox.ts";

interface DeliveryLimits {
  /** Timeout of one attempt of a notifier. Seconds. */
  timeout_seconds: number;
  /** Time for which finished deliveries are listed. Days. */
  keep_days: number;
}

/** Throws ChannelError for faults that the schema of the channels cannot express. */
export function createMessenger(host: CoreHost, limits: DeliveryLimits, parts: MessengerParts): Messenger {
  const { notifiers, seals } = parts;
  const channels = readChannels(parts.channels, notifiers, parts.rotas);
  const outbox = createOutbox({
    channels,
    notifiers,
    reviewers: host.reviewers.names(),
    users: parts.knownUsers,
    groups: host.groups,
    seals,
    notices: parts.notices.map(({ plugin, kind, channels: named }) => ({
      kind,
      channels: readNoticeChannels(plugin, named, channels),
    })),
    breakGlass: readNoticeChannels("break_glass", parts.emergencyChannels, channels),
    newId: host.newId,
  });
  let courier: Courier | null = null;
  return {
    channels: createChannels(channels),
    write: outbox.write,
    start() {
      if (outbox.write === null) return;
      if (channels.size > 0 && host.config.server.public_url === null)
        host.log.warn(
          "notifications contain links to this service, but ASSENT_PUBLIC_URL is not set; set it to the address that people use",
        );
      const digests = new Set([...channels.values()].flatMap(({ name, digest }) => (digest === null ? [] : [name])));
      const { storage, ledger, log, clock } = host;
      courier = createCourier({
        storage,
        ledger,
        seals: seals(),
        log,
        clock,
        notifiers,
        lease: host.leaderLease("deliveries"),
        messages: createMessageBuilder({
          storage,
          seals: seals(),
          clock,
          notices: parts.notices.map(({ kind }) => kind),
          voteAddition: host.voteAddition,
          publicUrl: () => parts.address().replace(/\/+$/, ""),
          digests,
          users: parts.currentUsers,
          groups: host.groups,
          policies: async () => (await host.policies.current()).compiled,
          mac: (message) => host.vault.mac("approval-link", message),
        }),
        timeoutMs: limits.timeout_seconds * 1000,
        keepMs: limits.keep_days * 86_400_000,
        digests,
        random: Math.random,
      });
      courier.start();
    },
    async stop() {
      await courier?.stop();
    },
  };
}
