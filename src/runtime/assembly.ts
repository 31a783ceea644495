/**
 * Creates everything that a service consists of before its start: plugins, hosts, a storage that is not open yet, and
 * the fetch handler.
 */
import { V7Generator } from "uuidv7";
import type { Config } from "../config/index.ts";
import { readRotas } from "../config/rota-schema.ts";
import type { Groups } from "../contract/core-host.ts";
import type { Logger } from "../contract/host.ts";
import type { Storage } from "../contract/storage.ts";
import { siteOrigin } from "../domain/loopback.ts";
import type { RequestTrace } from "../contract/tracer.ts";
import { readChannels, readNoticeChannels } from "../delivery/channels.ts";
import { createOutbox, type Outbox } from "../delivery/outbox.ts";
import { createFetch, type FetchHandler } from "../http/handler.ts";
import { createRequestByteBudget, createRequestQueue } from "../http/overload-limits.ts";
import { createResponseByteBudget } from "../http/response-byte-budget.ts";
import { createGroupService } from "../identity/groups.ts";
import { createLedgerClock, type LedgerClock } from "../ledger/commit/clock.ts";
import { createLogger } from "../serve/log.ts";
import { createHosts, type Hosts, type RuntimeState } from "./host.ts";
import { createStorage } from "./plugins/create-storage.ts";
import { collectDeclarations, type Declarations } from "./plugins/declarations.ts";
import { assignSections, loadPlugins, type LoadedPlugin } from "./plugins/loader.ts";
import { assertCoreGrants, assertUniqueNames } from "./plugins/plugin-options.ts";
import { collectContributions, type Registry } from "./plugins/registry.ts";
import { createTracing, logWithTraceIds } from "./tracing.ts";

export interface RuntimeOptions {
  /** Plugins to use instead of the plugins in `config.plugins`. */
  plugins?: LoadedPlugin[];
  /** Storage to use instead of the storage of a plugin, for tests of plugins. It must not be open yet. */
  storage?: Storage;
  log?: Logger;
  clock?(): number;
  /** Whether to accept a store that is older than the checkpoint outside it. */
  acceptRollback?: boolean;
  /** Whether to accept the configured token secret even if other processes of this store have a different secret. */
  acceptSecret?: boolean;
  /** Whether to accept, and store, an environment that differs from the database's environment. */
  acceptEnvironment?: boolean;
  /** Whether to accept a permit key that does not belong to the store, so that a lost key can be replaced. */
  anyPermitKey?: boolean;
  /** The server's own response class, if it is faster than the global class. */
  Response?: typeof Response;
}

export interface Assembly {
  readonly config: Config;
  readonly options: RuntimeOptions;
  readonly log: Logger;
  readonly clock: LedgerClock;
  /** Returns the origin at which people use the service; null if it is unknown. */
  origin(): string | null;
  /** Returns a new UUIDv7. */
  newId(): string;
  /** Identifies this process among the processes that share the store. */
  readonly instance: string;
  /** Aborted when the service begins to stop. */
  readonly stopping: AbortController;
  trace(): RequestTrace | null;
  readonly groups: Groups;
  readonly declared: Declarations;
  readonly contributions: Registry;
  /** The storage, which is not open yet; null only if there are no plugins. */
  readonly storage: Storage | null;
  readonly outbox: Outbox;
  readonly state: RuntimeState;
  readonly hosts: Hosts;
  readonly fetch: FetchHandler;
}

/** Limits on the work in progress. The fetch handler enforces them, and hosts report their use. */
type Load = ReturnType<typeof createLoad>;

/** Loads the plugins and runs their `setup`. Rejects with PluginError or ChannelError. */
export async function assembleService(config: Config, options: RuntimeOptions): Promise<Assembly> {
  const state: RuntimeState = {
    port: config.server.port,
    contributions: null,
    tracing: null,
    channels: new Map(),
    parts: null,
  };
  const origin = () => siteOrigin(config.server, state.port);
  const trace = () => state.tracing?.current() ?? null;
  const log = logWithTraceIds(options.log ?? createLogger(config.log.level), trace);
  const clock = createLedgerClock(options.clock ?? Date.now, log);
  const ids = new V7Generator();
  const newId = (): string => ids.generateOrResetWithTs(clock.now()).toString();
  const stopping = new AbortController();
  const instance = newId();
  const plugins = assignSections(options.plugins ?? (await loadPlugins(config)), config.sections);
  assertUniqueNames(plugins);
  assertCoreGrants(plugins);
  const declared = collectDeclarations(plugins);
  const load = createLoad(config);
  const { rotas } = readRotas(config.rota, config.groups);
  const groups = createGroupService(config.groups, rotas);
  const hosts = createHosts({
    config,
    load: {
      bodyBytes: () => load.inFlight.bytes,
      responseBytes: () => load.responses.bytes,
      queued: () => load.queue.length,
    },
    log,
    origin,
    clock: clock.now,
    timeOfDay: clock.timeOfDay,
    newId,
    instance,
    stopping: stopping.signal,
    state,
    groups,
    declared,
    trace,
  });
  const storage =
    options.storage ?? (await createStorage(plugins, { log, data: config.data, databaseUrl: config.database_url }));
  const contributions = await collectContributions(plugins, declared, hosts, log);
  state.contributions = contributions;
  if (contributions.tracer !== null) state.tracing = createTracing(contributions.tracer, log);
  state.channels = readChannels(config.channels, contributions.notifiers, rotas);
  const base = {
    config,
    options,
    log,
    clock,
    origin,
    newId,
    instance,
    stopping,
    trace,
    groups,
    declared,
    contributions,
    storage,
    state,
    hosts,
  };
  return { ...base, outbox: createServiceOutbox(base), fetch: createServiceFetch(base, load) };
}

function createLoad({ server, ledger }: Config) {
  return {
    inFlight: createRequestByteBudget(server.max_bytes_in_flight),
    responses: createResponseByteBudget({
      total: server.max_response_bytes,
      perKey: server.max_response_bytes_per_key,
    }),
    queue: createRequestQueue(ledger.max_queue),
  };
}

function createServiceOutbox({
  config,
  contributions,
  state: { channels },
  groups,
  hosts,
  newId,
}: Pick<Assembly, "config" | "contributions" | "state" | "groups" | "hosts" | "newId">): Outbox {
  return createOutbox({
    channels,
    notifiers: contributions.notifiers,
    reviewers: contributions.reviewers.map(({ name }) => name),
    users: () => hosts.part("users").known(),
    groups,
    seals: () => hosts.part("seals"),
    notices: contributions.notices.map(({ plugin, kind, channels: named }) => ({
      kind,
      channels: readNoticeChannels(plugin, named, channels),
    })),
    breakGlass: readNoticeChannels("break_glass", config.break_glass.notify, channels),
    newId,
  });
}

function createServiceFetch(assembly: Omit<Assembly, "outbox" | "fetch">, load: Load): FetchHandler {
  const { config, options, log, origin, newId, stopping, declared, contributions, state, hosts } = assembly;
  const { routes, pages, facades, authenticators, onResponse } = contributions;
  return createFetch({
    routes,
    pages,
    facades,
    authenticators,
    errors: new Set(declared.errors.map(({ code }) => code)),
    authenticate: (value, options) => hosts.part("keys").authenticate(value, options),
    hold: (credential) => hosts.part("heldCredentials").hold(credential),
    config,
    log,
    origin,
    newId,
    stopping: stopping.signal,
    tracing: state.tracing,
    ...load,
    onResponse,
    ...(options.Response === undefined ? {} : { Response: options.Response }),
  });
}
