/** The contract of the plugin that writes and sends the messages of the service. At most one plugin is the messenger. */
import type { Rota } from "../domain/rota.ts";
import type { EntryBody } from "../domain/entries.ts";
import type { Users } from "../domain/users.ts";
import type { ChannelSettings } from "./channel-settings.ts";
import type { NoticeKind } from "./notice.ts";
import type { Notifier } from "./notifier.ts";
import type { RowSeals } from "./row-seals.ts";
import type { StorageTransaction } from "./storage.ts";

/** What the messenger receives once all plugins are set up. */
export interface MessengerParts {
  /** The channels of the configuration, keyed by name. */
  readonly channels: Readonly<Record<string, ChannelSettings>>;
  readonly rotas: ReadonlyMap<string, Rota>;
  /** Names of the channels that are notified of emergency approvals; null for all channels. */
  readonly emergencyChannels: readonly string[] | null;
  readonly notifiers: readonly Notifier[];
  /** The kinds of notices of all features, each with the names of its channels; null for all channels. */
  readonly notices: readonly { plugin: string; kind: NoticeKind; channels: readonly string[] | null }[];
  /** Returns the address of the service that people use. */
  address(): string;
  /** Returns the users as of the last commit that this process followed. Available after start. */
  knownUsers(): Users;
  /** Returns the users as of the newest commit. Available after start. Rejects with StorageError. */
  currentUsers(): Promise<Users>;
  /** Available after start. */
  seals(): RowSeals;
}

export interface Messenger {
  readonly channels: Channels;
  /**
   * Writes the messages about the entries of a batch, in the batch's transaction; null if there is no one to notify. If
   * it rejects, the batch is not recorded. Waits for nothing except the store, because the ledger is locked.
   * @param now time of the batch, in milliseconds since the epoch
   */
  readonly write:
    | ((
        tx: StorageTransaction,
        entries: readonly { readonly seq: number; readonly body: EntryBody }[],
        now: number,
      ) => Promise<void>)
    | null;
  /** Begins to send messages. Called after all plugins have started. */
  start(): void;
  /** Stops sending; messages that are not sent yet stay in the store. Called before plugins stop. Idempotent. */
  stop(): Promise<void>;
}

/** The notification channels of the configuration. */
export interface Channels {
  names(): readonly string[];
  /**
   * Returns the addresses of this user in the named channels, and in the channels to which these escalate.
   * @param users the users of the same moment
   */
  addressesOfUser(
    named: readonly string[],
    id: string,
    users: Users,
  ): readonly { readonly notifier: string; readonly to: string }[];
  /** Returns the names of the channels that notify this user through this notifier. */
  channelsOfUser(notifier: string, id: string, users: Users): string[];
}

/** Thrown for a fault in `channels` of the configuration that its schema cannot express. */
export class ChannelError extends Error {
  constructor(channel: string, message: string) {
    super(`assent.yaml: /channels/${channel}: ${message}`);
    this.name = "ChannelError";
  }
}

/** The channels of a service without a messenger. */
export const NO_CHANNELS: Channels = { names: () => [], addressesOfUser: () => [], channelsOfUser: () => [] };
