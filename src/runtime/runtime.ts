/** Assembles the service: plugins, store, ledger, keys, policies and the fetch handler. */
import { V7Generator } from "uuidv7";
import type { Config } from "../config/index.ts";
import { readRotas } from "../config/rota-schema.ts";
import type { CoreHost } from "../contract/core-host.ts";
import type { CredentialIssuer } from "../contract/credentials.ts";
import type { Gauge } from "../contract/gauge.ts";
import type { Logger } from "../contract/host.ts";
import type { Route } from "../contract/resource.ts";
import type { Reviewer } from "../contract/reviewer.ts";
import type { Tracing } from "../contract/tracer.ts";
import { createGroups } from "../identity/groups.ts";
import { createFetch, type FetchHandler } from "../http/handler.ts";
import { createRequestByteBudget, createQueue } from "../http/in-flight.ts";
import { createResponsesInFlight } from "../http/responses-in-flight.ts";
import { createChannels, readChannels, noticeChannelNames, type Channel } from "../delivery/channels.ts";
import { openCourier } from "../delivery/open-courier.ts";
import { createOutbox } from "../delivery/outbox.ts";
import {
  addAdminKey,
  createFirstKeys,
  ensureAdminKey,
  FIRST_AGENT,
  warnAboutUnboundKeys,
  type FirstKeys,
} from "../identity/first-keys.ts";
import { followSources } from "../policies/follow-sources.ts";
import { createLogger } from "../serve/log.ts";
import { createLeaderLease } from "../cluster/leader-lease.ts";
import { createIdempotencySweep } from "../cluster/sweep-idempotency.ts";
import { createSumFolder } from "../cluster/fold-sums.ts";
import { loadPlugins, type LoadedPlugin } from "./plugins/loader.ts";
import { createHosts } from "./host.ts";
import { createLedgerClock } from "../ledger/commit/clock.ts";
import { publishCheckpoints } from "../ledger/witness/publish.ts";
import { verifyEd25519 } from "../identity/vault.ts";
import type { PermitKeyService, PermitRotation } from "../identity/permit-keys.ts";
import { openParts, type Disposer, type Parts } from "./parts.ts";
import { collectDeclarations } from "./plugins/declarations.ts";
import { assertGrants, assertUniqueNames } from "./plugins/plugin-options.ts";
import { collectContributions } from "./plugins/registry.ts";
import { createStorage } from "./plugins/create-storage.ts";
import { createTracing, logWithTraceIds } from "./tracing.ts";

/** Page of the plugin that signs people in. */
const SIGN_IN_PATH = "/sign-in";

export interface RuntimeOptions {
  /** Replaces the plugins that `config.plugins` names. */
  plugins?: LoadedPlugin[];
  log?: Logger;
  clock?(): number;
  /** Accepts a store that is older than the checkpoint kept outside it. */
  acceptRollback?: boolean;
  /** Accepts the configured token secret even if the other processes on this store have another one. */
  acceptSecret?: boolean;
  /** Starts with an environment that differs from that of the database, and stores it. */
  acceptEnvironment?: boolean;
  /** Accepts a permit key that is not the store's, so that a lost key can be rotated. */
  anyPermitKey?: boolean;
  /** The server's own response class, if it is faster than the global one. */
  Response?: typeof Response;
}

export interface Runtime {
  fetch: FetchHandler;
  /** Opens the store, verifies the ledger, loads policies and starts plugins. Closes everything again if a step fails. */
  start(): Promise<void>;
  /**
   * Creates an admin key and an agent key if the store has no keys. Calls `show` with them before they are stored. Does
   * nothing if the configuration names an admin key.
   */
  createFirstKeys(show: (keys: FirstKeys) => void): Promise<void>;
  /** True if there is a page at `/`: the console, unless the configuration excludes it. */
  readonly hasHomePage: boolean;
  /** Creates an admin key, recorded like any other. For an operator who lost all admin keys. */
  createAdminKey(name: string): Promise<{
    id: string;
    name: string;
    prefix: string;
    scopes: string[];
    agent_id: null;
    owner: null;
    expires_at: null;
    revoked_at: null;
    key: string;
  }>;
  /** Records the next key that signs permits. Rejects with VaultError for an unsuitable key. */
  rotatePermitKey(rotation: PermitRotation): ReturnType<PermitKeyService["rotate"]>;
  /** Changes the key of the log. Rejects with VaultError for an unsuitable key. */
  rotateLogKey: Parts["rotateLogKey"];
  /** Ends long waits, so that their requests can be answered before the server closes. */
  beginStop(): void;
  /** Finishes accepted work, then closes. Idempotent. */
  stop(): Promise<void>;
  /** The privileged host, for tests and commands. Available after the start. */
  readonly host: CoreHost;
  /** The routes of all plugins. */
  readonly routes: readonly Route[];
}

export async function createRuntime(config: Config, options: RuntimeOptions = {}): Promise<Runtime> {
  let tracing: Tracing | null = null;
  const trace = () => tracing?.current() ?? null;
  const log = logWithTraceIds(options.log ?? createLogger(config.log.level), trace);
  const ledgerClock = createLedgerClock(options.clock ?? Date.now, log);
  const clock = ledgerClock.now;
  const ids = new V7Generator();
  const newId = (): string => ids.generateOrResetWithTs(clock()).toString();
  const stopping = new AbortController();
  /** Identifies this process among those that share the store. */
  const instance = newId();
  let parts: Parts | null = null;
  let routes: readonly Route[] | null = null;
  let credentialIssuers: readonly CredentialIssuer[] | null = null;
  let gauges: readonly Gauge[] | null = null;
  let state: "new" | "started" | "stopped" = "new";
  const plugins = options.plugins ?? (await loadPlugins(config));
  assertUniqueNames(plugins);
  assertGrants(plugins);
  const declared = collectDeclarations(plugins);
  const inFlight = createRequestByteBudget(config.server.max_bytes_in_flight);
  const { max_response_bytes: total, max_response_bytes_per_key: perKey } = config.server;
  const responses = createResponsesInFlight({ total, perKey });
  const queue = createQueue(config.ledger.max_queue);
  const { rotas } = readRotas(config.rota, config.groups);
  const groups = createGroups(config.groups, rotas);
  const { hostOf, coreHostOf, part } = createHosts({
    config,
    load: { bodyBytes: () => inFlight.bytes, responseBytes: () => responses.bytes, queued: () => queue.length },
    log,
    clock,
    newId,
    instance,
    stopping: stopping.signal,
    parts: () => parts,
    routes: () => routes,
    credentialIssuers: () => credentialIssuers,
    gauges: () => gauges,
    channels: createChannels(() => channels),
    reviewers: {
      names: () => [...reviewers.keys()].sort(),
      find: (name) => reviewers.get(name) ?? null,
    },
    groups,
    declared,
    trace,
  });
  let channels: ReadonlyMap<string, Channel> = new Map();
  let reviewers: ReadonlyMap<string, Reviewer> = new Map();
  const storage = await createStorage(plugins, { log, data: config.data, databaseUrl: config.database_url });
  const registry = await collectContributions(plugins, declared, { hostOf, coreHostOf }, log);
  routes = registry.routes;
  if (registry.tracer !== null) tracing = createTracing(registry.tracer, log);
  credentialIssuers = registry.credentialIssuers;
  gauges = registry.gauges;
  channels = readChannels(config.channels, registry.notifiers, rotas);
  reviewers = new Map(registry.reviewers.map((reviewer) => [reviewer.name, reviewer]));
  const outbox = createOutbox({
    channels,
    notifiers: registry.notifiers,
    reviewers: registry.reviewers.map(({ name }) => name),
    stops: noticeChannelNames("stop", config.stop.notify, channels),
    breakGlass: noticeChannelNames("break_glass", config.break_glass.notify, channels),
    newId,
  });
  const fetch = createFetch({
    routes: registry.routes,
    pages: registry.pages,
    facades: registry.facades,
    authenticators: registry.authenticators,
    errors: new Set(declared.errors.map(({ code }) => code)),
    authenticate: (value, how) => part("keys").authenticate(value, how),
    config,
    log,
    newId,
    stopping: stopping.signal,
    tracing,
    inFlight,
    responses,
    queue,
    onResponse: registry.onResponse,
    ...(options.Response === undefined ? {} : { Response: options.Response }),
  });

  /** Functions that close the opened components. `stop` calls them in reverse. */
  const opened: Disposer[] = [];

  async function start(): Promise<void> {
    if (state !== "new") throw new Error(`a runtime starts once; this one is ${state}`);
    state = "started";
    if (storage === null) return;
    try {
      opened.push({ name: "storage", close: () => storage.close() });
      parts = await openParts(
        {
          config,
          storage,
          declared,
          groups,
          sources: registry.policySources.map(({ name }) => name),
          outbox,
          instance,
          log,
          trace,
          clock: ledgerClock,
          newId,
          acceptRollback: options.acceptRollback === true,
          acceptSecret: options.acceptSecret === true,
          acceptEnvironment: options.acceptEnvironment === true,
          anyPermitKey: options.anyPermitKey === true,
        },
        opened,
      );
      if (config.agents === "bound") await warnAboutUnboundKeys(parts.storage, log, clock());
      if (config.admin_key !== null) await ensureAdminKey(parts.storage, parts.ledger, config.admin_key, newId, clock);
      // Plugins are stopped after the policy sources that they contribute, so that no stopped source is watched.
      opened.push({ name: "plugins", close: () => registry.stop() });
      opened.push({ name: "policies", close: await followSources(parts.policies, registry.policySources, log) });
      if (storage.upkeep !== undefined) {
        const folding = createSumFolder({
          upkeep: storage.upkeep.bind(storage),
          ledger: parts.ledger,
          log,
          lease: createLeaderLease(storage, "analytics", instance),
        });
        opened.push({ name: "sums", close: () => folding.stop() });
        folding.start();
      }
      const sweep = createIdempotencySweep({
        storage,
        ledger: parts.ledger,
        lease: createLeaderLease(storage, "idempotency", instance),
        keepMs: config.retention.idempotency_days * 86_400_000,
        clock,
        log,
      });
      opened.push({ name: "idempotency keys", close: () => sweep.stop() });
      sweep.start();
      await registry.start();
      opened.push(
        ...publishCheckpoints(
          config.ledger,
          parts,
          (name) => createLeaderLease(storage, name, instance),
          log,
          verifyEd25519,
        ),
      );
      if (outbox.write !== null) {
        const courier = openCourier(parts, { config, log, clock, notifiers: registry.notifiers, channels, instance });
        opened.push({ name: "courier", close: () => courier.stop() });
        courier.start();
      }
    } catch (error) {
      await stop();
      throw error;
    }
  }

  let stopped: Promise<void> | null = null;
  function stop(): Promise<void> {
    stopped ??= (async () => {
      state = "stopped";
      beginStop();
      for (let part = opened.pop(); part !== undefined; part = opened.pop()) {
        try {
          await part.close();
        } catch (error) {
          // Close the other components anyway, above all the store.
          log.error("a part of the service did not stop as it should", { part: part.name, error: String(error) });
        }
      }
    })();
    return stopped;
  }

  function beginStop(): void {
    stopping.abort(new Error("the service is stopping"));
  }

  async function createAdminKey(name: string): ReturnType<Runtime["createAdminKey"]> {
    const { row, value } = await addAdminKey(part("ledger"), part("keys"), name, clock);
    return {
      id: row.id,
      name,
      prefix: row.prefix,
      scopes: row.scopes,
      agent_id: null,
      owner: null,
      expires_at: null,
      revoked_at: null,
      key: value,
    };
  }

  return {
    fetch,
    start,
    async createFirstKeys(show) {
      if (config.admin_key === null)
        await createFirstKeys(
          part("storage"),
          part("ledger"),
          part("keys"),
          clock,
          config.agents === "any" ? null : FIRST_AGENT,
          registry.pages.some(({ path }) => path === SIGN_IN_PATH) ? { id: newId() } : null,
          show,
        );
    },
    hasHomePage: registry.pages.some(({ path }) => path === "/"),
    createAdminKey,
    rotatePermitKey: (rotation) => part("permits").rotate(part("ledger"), rotation),
    rotateLogKey: (rotation) => part("rotateLogKey")(rotation),
    beginStop,
    stop,
    host: coreHostOf("assent"),
    get routes() {
      return registry.routes;
    },
  };
}
