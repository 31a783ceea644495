/** Creates the courier of a runtime. */
import { createLeaderLease } from "../cluster/leader-lease.ts";
import type { Config } from "../config/index.ts";
import type { Groups, Vault } from "../contract/core-host.ts";
import type { Logger } from "../contract/host.ts";
import type { NoticeKind } from "../contract/notice.ts";
import type { VoteAddition } from "../contract/vote-addition.ts";
import type { Notifier } from "../contract/notifier.ts";
import type { Policies } from "../contract/policies.ts";
import type { RowSeals } from "../contract/row-seals.ts";
import type { Storage } from "../contract/storage.ts";
import type { Ledger } from "../contract/ledger.ts";
import type { UserService } from "../identity/users.ts";
import type { Channel } from "./channels.ts";
import { createCourier, type Courier } from "./courier.ts";
import { createMessageBuilder } from "./message.ts";

export function openCourier(
  {
    storage,
    ledger,
    vault,
    seals,
    policies,
    users,
  }: {
    storage: Storage;
    ledger: Ledger;
    vault: Vault;
    seals: RowSeals;
    policies: Pick<Policies, "current">;
    users: Pick<UserService, "refreshed">;
  },
  options: {
    config: Config;
    log: Logger;
    /** Returns the service's address that people use. */
    address(): string;
    clock(): number;
    notifiers: readonly Notifier[];
    notices: readonly NoticeKind[];
    voteAddition: VoteAddition | null;
    channels: ReadonlyMap<string, Channel>;
    groups: Groups;
    instance: string;
  },
): Courier {
  const { config, log, address, clock, notifiers, notices, voteAddition, channels, groups, instance } = options;
  if (channels.size > 0 && config.server.public_url === null)
    log.warn(
      "notifications contain links to this service, but ASSENT_PUBLIC_URL is not set; set it to the address that people use",
    );
  const digests = new Set([...channels.values()].flatMap(({ name, digest }) => (digest === null ? [] : [name])));
  return createCourier({
    storage,
    ledger,
    seals,
    log,
    clock,
    notifiers,
    lease: createLeaderLease(storage, "deliveries", instance),
    messages: createMessageBuilder({
      storage,
      seals,
      clock,
      notices,
      voteAddition,
      publicUrl: () => address().replace(/\/+$/, ""),
      digests,
      users: () => users.refreshed(),
      groups,
      policies: async () => (await policies.current()).compiled,
      mac: (message) => vault.mac("approval-link", message),
    }),
    timeoutMs: config.deliveries.timeout_seconds * 1000,
    keepMs: config.deliveries.keep_days * 86_400_000,
    digests,
    random: Math.random,
  });
}
