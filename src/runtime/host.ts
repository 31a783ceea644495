/** Creates the hosts: the services of a runtime that plugins can use. */
import { createLeaderLease } from "../cluster/leader-lease.ts";
import type { Config } from "../config/index.ts";
import type { CoreHost, Documents, FactSources, Groups, HostStorage } from "../contract/core-host.ts";
import type { Credential, Host, HostConfig, Logger, VisibleActions } from "../contract/host.ts";
import { READER_METHODS, type Storage } from "../contract/storage.ts";
import { type Messenger, NO_CHANNELS } from "../contract/messenger.ts";
import type { RequestTrace, Tracing } from "../contract/tracer.ts";
import { openApiDocument } from "../http/openapi.ts";
import { createReadSlots } from "../http/read-slots.ts";
import { openActionCanceller } from "../identity/open-action-canceller.ts";
import { createSnapshot } from "../ledger/states.ts";
import { createVisibleReads } from "../storage/visible-reads.ts";
import { createFactReader } from "../policies/fact-reader.ts";
import { VERSION } from "../version.ts";
import type { ServiceParts } from "./service-parts.ts";
import type { Declarations } from "./plugins/declarations.ts";
import { createDocuments } from "./plugins/plugin-documents.ts";
import type { Registry } from "./plugins/registry.ts";
import { transactForPlugin } from "./plugins/transaction.ts";
import { createVisibleActions } from "./plugins/visible-actions.ts";

/** Values that are set after the hosts have been created, in this order. */
export interface RuntimeState {
  /** The port on which the service listens; 0 until it is known. */
  port: number;
  /** Contributions of the plugins; null until all plugins are set up. */
  contributions: Pick<
    Registry,
    "routes" | "credentialIssuers" | "gauges" | "checks" | "steps" | "reviewers" | "factSources"
  > | null;
  /** The traces; null without a tracing plugin. */
  tracing: Tracing | null;
  /** Null until all plugins are set up, and without a plugin that sends messages. */
  messenger: Messenger | null;
  /** The components; null before the start. */
  parts: ServiceParts | null;
}

interface HostOptions {
  config: Config;
  load: CoreHost["load"];
  log: Logger;
  origin(): string | null;
  clock(): number;
  timeOfDay(): number;
  newId(): string;
  /** Identifies this process among the processes that share the store. */
  instance: string;
  stopping: AbortSignal;
  state: RuntimeState;
  groups: Groups;
  trace(): RequestTrace | null;
  declared: Declarations;
}

export interface Hosts {
  hostOf(plugin: string): Host;
  coreHostOf(plugin: string): CoreHost;
  /** Returns a component that plugins cannot access. Throws before the start. */
  part<K extends keyof ServiceParts>(name: K): ServiceParts[K];
}

export function createHosts(options: HostOptions): Hosts {
  const { state } = options;
  const part = <K extends keyof ServiceParts>(name: K): ServiceParts[K] => {
    if (state.parts === null) throw notStartedError(name);
    return state.parts[name];
  };
  function assertOpen(member: string): void {
    if (state.parts === null) throw notStartedError(member);
  }
  const common = createCommon(options, part, assertOpen);
  const waitForReadSlot = createReadSlots();
  const privileged = createPrivileged(options, part, waitForReadSlot);
  const documentsOf = (plugin: string): Documents =>
    createDocuments(plugin, () => {
      assertOpen("documents");
      return { storage: part("storage"), seals: part("seals") };
    });
  const pluginMembers = (plugin: string, documents: Documents): Pick<Host, "actions" | "transact"> => ({
    actions(credential: Credential): VisibleActions {
      assertOpen("actions");
      return createVisibleActions(part("storage"), credential, waitForReadSlot);
    },
    async transact(credential, job) {
      assertOpen("transact");
      return transactForPlugin(plugin, part("ledger"), documents, credential, job);
    },
  });
  return {
    part,
    hostOf(plugin) {
      const documents = documentsOf(plugin);
      const { get, list } = documents;
      return Object.freeze({ ...common, ...pluginMembers(plugin, documents), documents: Object.freeze({ get, list }) });
    },
    coreHostOf(plugin) {
      const documents = documentsOf(plugin);
      const members = { ...common, ...pluginMembers(plugin, documents), documents };
      return Object.freeze(Object.defineProperties(members, Object.getOwnPropertyDescriptors(privileged)) as CoreHost);
    },
  };
}

function notStartedError(name: string): Error {
  return new Error(`host.${name} is available after start; use it in a handler or in start(), not in setup()`);
}

function contributionsOf({ contributions }: RuntimeState, member: string): NonNullable<RuntimeState["contributions"]> {
  if (contributions === null) throw notStartedError(member);
  return contributions;
}

/** Creates the members that are the same for every plugin. */
function createCommon(
  options: HostOptions,
  part: Hosts["part"],
  assertOpen: (member: string) => void,
): Omit<Host, "documents" | "actions" | "transact"> {
  const { declared, log, clock, timeOfDay, newId, stopping, state } = options;
  const config = configOf(options.config);
  return {
    config,
    log,
    origin: options.origin,
    clock,
    timeOfDay,
    newId,
    stopping,
    async state(fold) {
      assertOpen("state");
      return (await part("states")()).state(fold);
    },
    async entries(from, to) {
      assertOpen("entries");
      const { size } = await part("ledger").head();
      return part("storage").entries(from, Math.max(from, Math.min(to, size)));
    },
    subscribe(listener) {
      assertOpen("subscribe");
      return part("ledger").subscribe(listener);
    },
    plugins: declared.plugins,
    entryTypes: declared.entryTypes,
    errors: declared.errors,
    openapi(description) {
      return openApiDocument({
        records: declared.records,
        ...description,
        routes: contributionsOf(state, "openapi").routes,
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
  { load, declared, state, groups, instance, trace, log, clock }: HostOptions,
  part: Hosts["part"],
  waitForReadSlot: CoreHost["waitForReadSlot"],
): Omit<CoreHost, keyof Host> {
  let reader: HostStorage | null = null;
  let factReader: FactSources | null = null;
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
    barErrors: declared.bars.errors,
    stepErrors: declared.stepErrors,
    reactions: declared.reactions,
    guard: declared.guard as CoreHost["guard"],
    voteAddition: declared.voteAddition as CoreHost["voteAddition"],
    soleApproval: declared.soleApproval,
    async snapshot() {
      const states = await part("states")();
      return createSnapshot(clock(), () => states, declared.bars);
    },
    get vault() {
      return part("vault");
    },
    get permits() {
      return part("permits");
    },
    openActionCanceller,
    get channels() {
      contributionsOf(state, "channels");
      return state.messenger?.channels ?? NO_CHANNELS;
    },
    reviewers: {
      names: () => (state.contributions?.reviewers ?? []).map(({ name }) => name).sort(),
      find: (name) => state.contributions?.reviewers.find((reviewer) => reviewer.name === name) ?? null,
    },
    get factSources() {
      return (factReader ??= createFactReader({
        sources: contributionsOf(state, "factSources").factSources,
        log,
        clock,
      }));
    },
    groups,
    trace,
    get credentialIssuers() {
      return contributionsOf(state, "credentialIssuers").credentialIssuers;
    },
    get checks() {
      return contributionsOf(state, "checks").checks;
    },
    get steps() {
      return contributionsOf(state, "steps").steps;
    },
    get gauges() {
      return contributionsOf(state, "gauges").gauges;
    },
    get processes() {
      return part("processes");
    },
    leaderLease: (name) => createLeaderLease(part("storage"), name, instance),
  };
}

/** Copy each member by name, so that plugins can read a new setting only after it is added here. */
function configOf({ data, policies, environment, agents, approvals, permits, server }: Config): HostConfig {
  const { max_wait_seconds, public_url, max_page_bytes } = server;
  return Object.freeze({
    data,
    policies,
    environment,
    agents,
    approvals: Object.freeze({ ...approvals }),
    permits: Object.freeze({ valid_seconds: permits.valid_seconds }),
    server: Object.freeze({ max_wait_seconds, public_url, max_page_bytes }),
  });
}

/**
 * Returns an object with only the reads, `schema` and `ping`, so that plugins cannot call other methods at run time.
 */
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
