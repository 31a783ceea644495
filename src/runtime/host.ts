/** What plugins are given: the parts of a runtime, as far as plugins may use them. */
import { createLeaderLease } from "../cluster/leader-lease.ts";
import type { Config } from "../config/index.ts";
import type { Channels, Groups, Host, HostConfig, HostStorage, Logger } from "../contract/host.ts";
import type { Route } from "../contract/resource.ts";
import type { Declarations } from "./plugins/declarations.ts";
import { createDocuments } from "./plugins/documents.ts";
import { READER_METHODS, type Storage } from "../contract/storage.ts";
import { openApiDocument } from "../http/openapi.ts";
import { createReadSlots } from "../http/read-slots.ts";
import { containment } from "../identity/containment.ts";
import { createVisibleReads } from "../storage/visible-reads.ts";
import type { Parts } from "./parts.ts";
import { VERSION } from "../version.ts";

export interface HostOptions {
  config: Config;
  load: Host["load"];
  log: Logger;
  clock(): number;
  newId(): string;
  /** Tells this process from the others on the store. */
  instance: string;
  stopping: AbortSignal;
  /** Null before they are open. */
  parts(): Parts | null;
  /** Null before every plugin is set up. */
  routes(): readonly Route[] | null;
  channels: Channels;
  groups: Groups;
  /** What plugins bring by name. */
  declared: Declarations;
}

/** `after` gives a part itself, which plugins do not see, and throws before the start. */
export function createHosts(options: HostOptions): {
  hostOf(plugin: string): Host;
  after<K extends keyof Parts>(name: K): Parts[K];
} {
  const { log, clock, newId, instance, stopping, channels, groups, declared } = options;
  const config = configOf(options.config);
  const tooEarly = (name: string): Error =>
    new Error(`host.${name} is there after start; use it in a handler or in start(), not in setup()`);
  function after<K extends keyof Parts>(name: K): Parts[K] {
    const parts = options.parts();
    if (parts === null) throw tooEarly(name);
    return parts[name];
  }
  let reader: HostStorage | null = null;
  const shared: Omit<Host, "documents"> = {
    config,
    load: options.load,
    log,
    clock,
    stopping,
    waitForReadSlot: createReadSlots(),
    newId,
    scopes: declared.scopes,
    entryTypes: declared.entryTypes,
    errors: declared.errors,
    get routes() {
      const routes = options.routes();
      if (routes === null) throw tooEarly("routes");
      return routes;
    },
    openapi: (about) =>
      openApiDocument({
        ...about,
        routes: shared.routes,
        errors: declared.errors,
        scopes: declared.scopes.length,
        version: VERSION,
        server: config.server.public_url?.replace(/\/$/, "") ?? "/",
      }),
    get storage() {
      return (reader ??= readerOf(after("storage"), shared.waitForReadSlot));
    },
    get ledger() {
      return after("ledger");
    },
    get policies() {
      return after("policies");
    },
    get keys() {
      return after("keys");
    },
    get agents() {
      return after("agents");
    },
    get stops() {
      return after("stops");
    },
    get vault() {
      return after("vault");
    },
    get permits() {
      return after("permits");
    },
    containment,
    channels,
    groups,
    get processes() {
      return after("processes");
    },
    leaderLease: (name) => createLeaderLease(after("storage"), name, instance),
  };
  const hostOf = (plugin: string): Host =>
    Object.assign(Object.create(shared) as Omit<Host, "documents">, {
      documents: createDocuments(plugin, () => {
        if (options.parts() === null) throw tooEarly("documents");
        return after("storage");
      }),
    });
  return { hostOf, after };
}

/** Copied member by member: what is added to the configuration is not a plugin's to see until somebody says so here. */
function configOf({ data, policies, agents, approvals, permits, retention, stop, server }: Config): HostConfig {
  const { max_wait_seconds, public_url, max_page_bytes } = server;
  return Object.freeze({
    data,
    policies,
    agents,
    approvals: Object.freeze({ ...approvals }),
    permits: Object.freeze({ valid_seconds: permits.valid_seconds }),
    retention: Object.freeze({ ...retention }),
    stop: Object.freeze({ ...stop }),
    server: Object.freeze({ max_wait_seconds, public_url, max_page_bytes }),
  });
}

/** The reads alone, also for who has not compiled against the contract. */
function readerOf(storage: Storage, yieldTurn: () => Promise<void>): HostStorage {
  const reads = READER_METHODS.filter((name) => name !== "document" && name !== "documents").map((name) => [
    name,
    (storage[name] as () => unknown).bind(storage),
  ]);
  return Object.freeze({
    ...(Object.fromEntries(reads) as HostStorage),
    ...createVisibleReads(storage, yieldTurn),
    name: storage.name,
    exclusive: storage.exclusive,
    schema: () => storage.schema(),
    ping: () => storage.ping(),
  });
}
