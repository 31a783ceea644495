/** Runs a service: starts its components in order and stops them in reverse order. */
import type { Config } from "../config/index.ts";
import type { CoreHost } from "../contract/core-host.ts";
import type { Route } from "../contract/resource.ts";
import type { Storage } from "../contract/storage.ts";
import type { FetchHandler } from "../http/handler.ts";
import { checkReferences } from "./check-references.ts";
import {
  addAdminKey,
  createFirstKeys,
  ensureAdminKey,
  FIRST_AGENT,
  warnAboutUnboundKeys,
  type FirstKeys,
} from "../identity/first-keys.ts";
import { followSources } from "../policies/follow-sources.ts";
import { createLeaderLease } from "../cluster/leader-lease.ts";
import { TimeLimitError, withTimeLimit } from "../cluster/time-limit.ts";
import { createIdempotencySweep } from "../cluster/sweep-idempotency.ts";
import { createSumUpdater } from "../cluster/update-sums.ts";
import type { PermitKeyService, PermitRotation } from "../identity/permit-keys.ts";
import type { LogKeyRotation, RotatedLogKey } from "../identity/rotate-log-key.ts";
import { assembleService, type Assembly, type RuntimeOptions } from "./assembly.ts";
import type { Disposer } from "./disposer.ts";
import { openServiceParts, type ServiceParts } from "./service-parts.ts";

export type { RuntimeOptions } from "./assembly.ts";

/** Page of the plugin that signs people in. */
const SIGN_IN_PATH = "/sign-in";

/** Time limit for closing one part of the service, longer than the time limits of its work. Milliseconds. */
const CLOSE_TIMEOUT_MS = 30_000;

export interface Runtime {
  fetch: FetchHandler;
  /**
   * Opens the store, verifies the ledger, loads policies and starts plugins. If a step fails, closes everything that
   * was opened.
   */
  start(): Promise<void>;
  /**
   * If the store has no keys, creates an admin key, an agent key and, if people can sign in, the first user. Calls
   * `show` with the keys before they are stored. Does nothing if the configuration contains an admin key.
   */
  createFirstKeys(show: (keys: FirstKeys) => void): Promise<void>;
  /** Sets the port on which the server listens, if it is not `server.port` of the configuration. */
  listensAt(port: number): void;
  /** Whether there is a page at `/`: the console, unless the configuration excludes it. */
  readonly hasHomePage: boolean;
  /** Creates an admin key and records it like any other key. For an operator who lost all admin keys. */
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
  rotateLogKey: ServiceParts["rotateLogKey"];
  /** Ends the waits of requests, so that they get a response before the server closes. */
  beginStop(): void;
  /**
   * Waits for accepted work, and then closes everything. Idempotent. Resolves even if a part of the service hangs, whose
   * name `hanging` then contains.
   */
  stop(): Promise<void>;
  /** Names of the parts that did not close within their time limit. */
  readonly hanging: readonly string[];
  /** The privileged host, for tests and commands. Available after the start. */
  readonly host: CoreHost;
  /** The routes of all plugins. */
  readonly routes: readonly Route[];
}

/**
 * Creates a service from its configuration. `start` opens the store and starts the plugins; `fetch` handles requests.
 * @example
 * const { config } = loadConfig({ cwd: process.cwd(), env: process.env });
 * const runtime = await createRuntime(config);
 * await runtime.start();
 */
export async function createRuntime(config: Config, options: RuntimeOptions = {}): Promise<Runtime> {
  return new ServiceRuntime(await assembleService(config, options));
}

class ServiceRuntime implements Runtime {
  readonly fetch: FetchHandler;
  readonly host: CoreHost;
  readonly routes: readonly Route[];
  readonly hanging: string[] = [];
  private readonly assembly: Assembly;
  /** Functions that close the opened components. `stop` calls them in reverse order. */
  private readonly opened: Disposer[] = [];
  private phase: "new" | "started" | "stopped" = "new";
  private stopped: Promise<void> | null = null;

  constructor(assembly: Assembly) {
    this.assembly = assembly;
    this.fetch = assembly.fetch;
    this.host = assembly.hosts.coreHostOf("assent");
    this.routes = assembly.contributions.routes;
  }

  listensAt(port: number): void {
    this.assembly.state.port = port;
  }

  get hasHomePage(): boolean {
    return this.hasPage("/");
  }

  private hasPage(address: string): boolean {
    return this.assembly.contributions.pages.some(({ path }) => path === address);
  }

  async start(): Promise<void> {
    if (this.phase !== "new") throw new Error(`a runtime starts once; this one is ${this.phase}`);
    this.phase = "started";
    const { storage } = this.assembly;
    if (storage === null) return;
    try {
      const parts = await this.openStore(storage);
      await this.followPolicies(parts);
      this.startUpkeep(parts);
      await this.assembly.contributions.start();
      this.startMessenger();
    } catch (error) {
      await this.stop();
      throw error;
    }
  }

  /** Opens the store and the components that read it, and creates the configured admin key. */
  private async openStore(storage: Storage): Promise<ServiceParts> {
    const {
      config,
      options,
      state,
      contributions,
      declared,
      groups,
      messenger,
      instance,
      log,
      clock,
      newId,
      stopping,
    } = this.assembly;
    this.opened.push({ name: "storage", close: () => storage.close() });
    const parts = await openServiceParts(
      {
        config,
        storage,
        declared,
        groups,
        sources: contributions.policySources.map(({ name }) => name),
        baselines: new Map(
          contributions.policySources
            .filter(({ baseline }) => baseline === true)
            .map(({ name, location = {} }) => [name, location]),
        ),
        outbox: messenger?.write ?? null,
        instance,
        log,
        trace: this.assembly.trace,
        clock,
        newId,
        stopping: stopping.signal,
        acceptRollback: options.acceptRollback === true,
        acceptSecret: options.acceptSecret === true,
        acceptEnvironment: options.acceptEnvironment === true,
        anyPermitKey: options.anyPermitKey === true,
      },
      this.opened,
    );
    state.parts = parts;
    checkReferences(config, await parts.users.refreshed(), log);
    if (config.agents === "bound") await warnAboutUnboundKeys(parts.storage, log, clock.now());
    if (config.admin_key !== null) await ensureAdminKey(parts.storage, parts.ledger, config.admin_key, newId);
    return parts;
  }

  private async followPolicies({ policies }: ServiceParts): Promise<void> {
    const { contributions, log } = this.assembly;
    // Stop plugins after the policy sources that they contribute, so that no source is watched after its plugin
    // stopped.
    this.opened.push({ name: "plugins", close: () => contributions.stop() });
    this.opened.push({ name: "policies", close: await followSources(policies, contributions.policySources, log) });
  }

  /** Starts the background jobs that only one process runs. */
  private startUpkeep({ storage, ledger }: ServiceParts): void {
    const { config, log, clock, instance } = this.assembly;
    if (storage.upkeep !== undefined) {
      const folding = createSumUpdater({
        upkeep: storage.upkeep.bind(storage),
        ledger,
        log,
        lease: createLeaderLease(storage, "analytics", instance),
      });
      this.opened.push({ name: "sums", close: () => folding.stop() });
      folding.start();
    }
    const sweep = createIdempotencySweep({
      storage,
      ledger,
      lease: createLeaderLease(storage, "idempotency", instance),
      keepMs: config.idempotency.keep_days * 86_400_000,
      clock: clock.now,
      log,
    });
    this.opened.push({ name: "idempotency keys", close: () => sweep.stop() });
    sweep.start();
  }

  private startMessenger(): void {
    const { messenger } = this.assembly;
    if (messenger === null) return;
    this.opened.push({ name: "messages", close: () => messenger.stop() });
    messenger.start();
  }

  beginStop(): void {
    this.assembly.stopping.abort(new Error("the service is stopping"));
  }

  stop(): Promise<void> {
    this.stopped ??= this.closeAll();
    return this.stopped;
  }

  private async closeAll(): Promise<void> {
    this.phase = "stopped";
    this.beginStop();
    for (let part = this.opened.pop(); part !== undefined; part = this.opened.pop()) {
      try {
        await withTimeLimit(part.close(), CLOSE_TIMEOUT_MS, `it did not close within ${CLOSE_TIMEOUT_MS / 1000} s`);
      } catch (error) {
        if (error instanceof TimeLimitError) this.hanging.push(part.name);
        // Continue to close the other components, most importantly the store.
        this.assembly.log.error("a part of the service did not stop as it should", {
          part: part.name,
          error: String(error),
        });
      }
    }
  }

  async createFirstKeys(show: (keys: FirstKeys) => void): Promise<void> {
    const { config, newId } = this.assembly;
    const { part } = this.assembly.hosts;
    if (config.admin_key !== null) return;
    await createFirstKeys(
      part("storage"),
      part("ledger"),
      part("keys"),
      config.agents === "any" ? null : FIRST_AGENT,
      this.hasPage(SIGN_IN_PATH) ? { id: newId() } : null,
      show,
    );
  }

  async createAdminKey(name: string): ReturnType<Runtime["createAdminKey"]> {
    const { hosts } = this.assembly;
    const { row, value } = await addAdminKey(hosts.part("ledger"), hosts.part("keys"), name);
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

  rotatePermitKey(rotation: PermitRotation): ReturnType<PermitKeyService["rotate"]> {
    const { part } = this.assembly.hosts;
    return part("permits").rotate(part("ledger"), rotation);
  }

  rotateLogKey(rotation: LogKeyRotation): Promise<RotatedLogKey> {
    return this.assembly.hosts.part("rotateLogKey")(rotation);
  }
}
