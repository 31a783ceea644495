/**
 * Creates everything that a service consists of before its start: plugins, hosts, a storage that is not open yet, and
 * the fetch handler.
 */
import { V7Generator } from "uuidv7";
import type { Config } from "../config/index.ts";
import { readRotas } from "../config/rota-schema.ts";
import type { Groups } from "../contract/core-host.ts";
import type { Logger } from "../contract/host.ts";
import { ChannelError, type Messenger, type MessengerParts } from "../contract/messenger.ts";
import type { Storage } from "../contract/storage.ts";
import { siteOrigin } from "../domain/loopback.ts";
import type { RequestTrace } from "../contract/tracer.ts";
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
import { assertCoreGrants, assertUniqueNames, PluginError } from "./plugins/plugin-options.ts";
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
  /** Writes and sends messages; null without a plugin that does. */
  readonly messenger: Messenger | null;
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
    messenger: null,
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
  state.messenger = createMessenger({ config, contributions, rotas, hosts, state, origin });
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
  return { ...base, messenger: state.messenger, fetch: createServiceFetch(base, load) };
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

/** Throws ChannelError if there is someone to notify, but no plugin that sends messages. */
function createMessenger({
  config,
  contributions,
  rotas,
  hosts,
  state,
  origin,
}: Pick<Assembly, "config" | "contributions" | "state" | "hosts" | "origin"> & {
  rotas: MessengerParts["rotas"];
}): Messenger | null {
  const { messenger, notifiers, notices } = contributions;
  const [channel] = Object.keys(config.channels);
  if (messenger === null) {
    if (channel !== undefined)
      throw new ChannelError(channel, 'no plugin sends messages; load the plugin "deliveries", or remove the channels');
    const feeding = notifiers.find(({ feeds = [] }) => feeds.length > 0);
    if (feeding !== undefined)
      throw new PluginError(feeding.name, 'it has feeds, but no plugin sends messages; load the plugin "deliveries"');
    return null;
  }
  const { server } = config;
  return messenger({
    channels: config.channels,
    rotas,
    emergencyChannels: config.break_glass.notify,
    notifiers,
    notices,
    address: () => server.public_url ?? origin() ?? listeningAddress(server.host, state.port),
    knownUsers: () => hosts.part("users").known(),
    currentUsers: () => hosts.part("users").refreshed(),
    seals: () => hosts.part("seals"),
  });
}

/** Returns the address at which the server listens, for links of a service without a configured address. */
function listeningAddress(host: string, port: number): string {
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

function createServiceFetch(assembly: Omit<Assembly, "messenger" | "fetch">, load: Load): FetchHandler {
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
