/** Creates the hosts: the services of a runtime that plugins can use. */
import { createLeaderLease } from "../cluster/leader-lease.ts";
import type { Config } from "../config/index.ts";
import type { Channels, CoreHost, Documents, Groups, HostStorage, Reviewers } from "../contract/core-host.ts";
import type { CredentialIssuer } from "../contract/credentials.ts";
import type { Gauge } from "../contract/gauge.ts";
import type { Credential, Host, HostConfig, Logger, VisibleActions } from "../contract/host.ts";
import type { Route } from "../contract/resource.ts";
import { READER_METHODS, type Storage } from "../contract/storage.ts";
import type { RequestTrace } from "../contract/tracer.ts";
import { openApiDocument } from "../http/openapi.ts";
import { createReadSlots } from "../http/read-slots.ts";
import { containment } from "../identity/containment.ts";
import { createVisibleReads } from "../storage/visible-reads.ts";
import { VERSION } from "../version.ts";
import type { Parts } from "./parts.ts";
import type { Declarations } from "./plugins/declarations.ts";
import { createDocuments } from "./plugins/plugin-documents.ts";
import { transactFor } from "./plugins/transaction.ts";
import { createVisibleActions } from "./plugins/visible-actions.ts";

interface HostOptions {
  config: Config;
  load: CoreHost["load"];
  log: Logger;
  clock(): number;
  newId(): string;
  /** Identifies this process among those that share the store. */
  instance: string;
  stopping: AbortSignal;
  /** Null before they are open. */
  parts(): Parts | null;
  /** Null before all plugins are set up. */
  routes(): readonly Route[] | null;
  /** Null before all plugins are set up. */
  credentialIssuers(): readonly CredentialIssuer[] | null;
  /** Null before all plugins are set up. */
  gauges(): readonly Gauge[] | null;
  channels: Channels;
  reviewers: Reviewers;
  groups: Groups;
  trace(): RequestTrace | null;
  declared: Declarations;
}

export interface Hosts {
  hostOf(plugin: string): Host;
  coreHostOf(plugin: string): CoreHost;
  /** Returns a component that plugins do not receive. Throws before the start. */
  part<K extends keyof Parts>(name: K): Parts[K];
}

export function createHosts(options: HostOptions): Hosts {
  const part = <K extends keyof Parts>(name: K): Parts[K] => {
    const parts = options.parts();
    if (parts === null) throw tooEarly(name);
    return parts[name];
  };
  function assertOpen(member: string): void {
    if (options.parts() === null) throw tooEarly(member);
  }
  const common = createCommon(options, part, assertOpen);
  const waitForReadSlot = createReadSlots();
  const privileged = createPrivileged(options, part, waitForReadSlot);
  const documentsOf = (plugin: string): Documents =>
    createDocuments(plugin, () => {
      assertOpen("documents");
      return part("storage");
    });
  const ownOf = (plugin: string, documents: Documents): Pick<Host, "actions" | "transact"> => ({
    actions(credential: Credential): VisibleActions {
      assertOpen("actions");
      return createVisibleActions(part("storage"), credential, waitForReadSlot);
    },
    async transact(credential, job) {
      assertOpen("transact");
      return transactFor(plugin, part("ledger"), documents, credential, job);
    },
  });
  return {
    part,
    hostOf(plugin) {
      const documents = documentsOf(plugin);
      const { get, list } = documents;
      return Object.freeze({ ...common, ...ownOf(plugin, documents), documents: Object.freeze({ get, list }) });
    },
    coreHostOf(plugin) {
      const documents = documentsOf(plugin);
      const own = { ...common, ...ownOf(plugin, documents), documents };
      return Object.freeze(Object.defineProperties(own, Object.getOwnPropertyDescriptors(privileged)) as CoreHost);
    },
  };
}

function tooEarly(name: string): Error {
  return new Error(`host.${name} is available after start; use it in a handler or in start(), not in setup()`);
}

/** Creates the members that are the same for every plugin. */
function createCommon(
  options: HostOptions,
  part: Hosts["part"],
  assertOpen: (member: string) => void,
): Omit<Host, "documents" | "actions" | "transact"> {
  const { declared, log, clock, newId, stopping } = options;
  const config = configOf(options.config);
  return {
    config,
    log,
    clock,
    newId,
    stopping,
    async entries(from, to) {
      assertOpen("entries");
      const { size } = await part("ledger").head();
      return part("storage").entries(from, Math.max(from, Math.min(to, size)));
    },
    subscribe(listener) {
      assertOpen("subscribe");
      return part("ledger").subscribe(listener);
    },
    entryTypes: declared.entryTypes,
    errors: declared.errors,
    openapi(about) {
      const routes = options.routes();
      if (routes === null) throw tooEarly("openapi");
      return openApiDocument({
        ...about,
        routes,
        errors: declared.errors,
        scopes: declared.scopes.length,
        version: VERSION,
        server: config.server.public_url?.replace(/\/$/, "") ?? "/",
      });
    },
  };
}

/** Creates the members that only privileged plugins receive. */
function createPrivileged(
  { load, declared, channels, reviewers, groups, instance, credentialIssuers, gauges, trace }: HostOptions,
  part: Hosts["part"],
  waitForReadSlot: CoreHost["waitForReadSlot"],
): Omit<CoreHost, keyof Host> {
  let reader: HostStorage | null = null;
  return {
    load,
    waitForReadSlot,
    scopes: declared.scopes,
    get storage() {
      return (reader ??= readerOf(part("storage"), waitForReadSlot));
    },
    get ledger() {
      return part("ledger");
    },
    get policies() {
      return part("policies");
    },
    get keys() {
      return part("keys");
    },
    get users() {
      return part("users");
    },
    get agents() {
      return part("agents");
    },
    get stops() {
      return part("stops");
    },
    get legalHolds() {
      return part("legalHolds");
    },
    get grants() {
      return part("grants");
    },
    get breakGlass() {
      return part("breakGlass");
    },
    get suggestedRules() {
      return part("suggestedRules");
    },
    get vault() {
      return part("vault");
    },
    get permits() {
      return part("permits");
    },
    containment,
    channels,
    reviewers,
    groups,
    trace,
    get credentialIssuers() {
      const issuers = credentialIssuers();
      if (issuers === null) throw tooEarly("credentialIssuers");
      return issuers;
    },
    get gauges() {
      const all = gauges();
      if (all === null) throw tooEarly("gauges");
      return all;
    },
    get processes() {
      return part("processes");
    },
    leaderLease: (name) => createLeaderLease(part("storage"), name, instance),
  };
}

/** Copies each member by name, so that a new setting is not visible to plugins before it is added here. */
function configOf({
  data,
  policies,
  environment,
  agents,
  approvals,
  legal_hold,
  permits,
  retention,
  stop,
  server,
}: Config): HostConfig {
  const { max_wait_seconds, public_url, max_page_bytes } = server;
  return Object.freeze({
    data,
    policies,
    environment,
    agents,
    approvals: Object.freeze({ ...approvals }),
    permits: Object.freeze({ valid_seconds: permits.valid_seconds }),
    retention: Object.freeze({ ...retention }),
    legal_hold: Object.freeze({ ...legal_hold }),
    stop: Object.freeze({ ...stop }),
    server: Object.freeze({ max_wait_seconds, public_url, max_page_bytes }),
  });
}

/** Contains only the reads, also at run time. */
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
