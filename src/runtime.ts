/** Puts the parts together: plugins, store, ledger, keys, policies and the fetch handler. */
import { join } from "node:path";
import { uuidv7 } from "uuidv7";
import type { Config } from "./config.ts";
import type { Host, Logger } from "./contract/host.ts";
import type { Route } from "./contract/resource.ts";
import { StorageError, type Storage } from "./contract/storage.ts";
import { formatVkey } from "./domain/checkpoint.ts";
import { toHex } from "./domain/hash.ts";
import { createFetch, type FetchHandler } from "./http/handler.ts";
import { createAgents, type AgentService } from "./kernel/agents.ts";
import { createChannels, readChannels, type Channel } from "./kernel/channels.ts";
import { createCourier, type Courier } from "./kernel/courier.ts";
import { createMessages } from "./kernel/message.ts";
import { createProcesses, type ProcessList } from "./kernel/processes.ts";
import { createOutbox, type Outbox } from "./kernel/outbox.ts";
import { addAdminKey, bootstrapKeys, type FirstKeys } from "./kernel/bootstrap.ts";
import { createKeyUse, type KeyUse } from "./kernel/key-use.ts";
import { createKeys, type KeyService } from "./kernel/keys.ts";
import { createPolicies, type PolicyService } from "./kernel/policies.ts";
import { loadPolicies } from "./kernel/policy-sources.ts";
import { openVault, VaultError, type OpenVault } from "./kernel/vault.ts";
import { openLedger, type OpenLedger } from "./ledger/index.ts";
import { createLogger } from "./log.ts";
import { createDuty } from "./kernel/duty.ts";
import { loadPlugins, type LoadedPlugin } from "./plugin-loader.ts";
import { collect } from "./registry.ts";

/** Meta of a store that `assent copy` has begun to fill and not finished. */
export const UNFINISHED_COPY = "unfinished_copy";

export interface RuntimeOptions {
  /** Instead of what `config.plugins` names. */
  plugins?: LoadedPlugin[];
  log?: Logger;
  clock?(): number;
  /** Goes on with a store that is older than the checkpoint kept beside it. */
  acceptRollback?: boolean;
  /** Takes the configured token secret though the other processes on this store had another one. */
  acceptSecret?: boolean;
  /** Called once, on the first start of an empty store. The values exist nowhere else. */
  firstKeys?(keys: FirstKeys): void;
  /** The response class of the server at hand, where a faster one than the global exists. */
  Response?: typeof Response;
}

export interface Runtime {
  fetch: FetchHandler;
  /** Opens the store, verifies the ledger, loads policies, starts plugins. After a failure everything is closed again. */
  start(): Promise<void>;
  /** For an operator at the machine who lost every admin key: one more, recorded like any other. */
  createAdminKey(name: string): Promise<{ id: string; name: string; prefix: string; scopes: string[]; agent_id: null; owner: null; expires_at: null; revoked_at: null; key: string }>;
  /** Ends long waits, so that their requests can be answered before the server closes. */
  beginStop(): void;
  /** Finishes what was taken, then closes. Idempotent. */
  stop(): Promise<void>;
  /** After start. */
  readonly host: Host;
}

export async function createRuntime(config: Config, options: RuntimeOptions = {}): Promise<Runtime> {
  const log = options.log ?? createLogger(config.log.level);
  const clock = options.clock ?? Date.now;
  const stopping = new AbortController();
  /** Tells this process from the others on the store. */
  const instance = uuidv7();
  let parts: Parts | null = null;
  let routes: readonly Route[] | null = null;
  let state: "new" | "started" | "stopped" = "new";
  const after = <K extends keyof Parts>(name: K): Parts[K] => {
    if (parts === null) throw new Error(`host.${name} is there after start; use it in a handler or in start(), not in setup()`);
    return parts[name];
  };
  const host: Host = {
    config,
    log,
    clock,
    stopping: stopping.signal,
    newId: uuidv7,
    get routes() {
      if (routes === null) throw new Error("host.routes is there after start; use it in a handler or in start(), not in setup()");
      return routes;
    },
    get storage() { return after("storage"); },
    get ledger() { return after("ledger"); },
    get policies() { return after("policies"); },
    get keys() { return after("keys"); },
    get agents() { return after("agents"); },
    get vault() { return after("vault"); },
    channels: createChannels(() => channels),
    get processes() { return after("processes"); },
    duty: (name) => createDuty(after("storage"), name, instance, clock),
  };
  let channels: ReadonlyMap<string, Channel> = new Map();
  const registry = await collect(options.plugins ?? (await loadPlugins(config)), host);
  routes = registry.routes;
  channels = readChannels(config.channels, registry.notifiers);
  const outbox = createOutbox({ channels, notifiers: registry.notifiers, allowSelfApproval: config.approvals.allow_self_approval, newId: uuidv7 });
  const fetch = createFetch({
    routes: registry.routes,
    pages: registry.pages,
    authenticate: (value) => after("keys").authenticate(value),
    config,
    log,
    clock,
    newId: uuidv7,
    stopping: stopping.signal,
    answered: registry.answered,
    ...(options.Response === undefined ? {} : { Response: options.Response }),
  });

  async function start(): Promise<void> {
    if (state !== "new") throw new Error(`a runtime starts once; this one is ${state}`);
    state = "started";
    if (registry.storage === null) return;
    try {
      parts = await openParts(config, registry.storage, registry.policySources.map(({ name }) => name), outbox, instance, log, clock, options);
      await parts.processes.start();
      const first = await bootstrapKeys(parts.storage, parts.ledger, parts.keys, config.admin_key, uuidv7, clock);
      if (first.admin !== null) options.firstKeys?.(first);
      unwatch = await loadPolicies(parts.policies, registry.policySources, log);
      await registry.start();
      if (outbox.write !== null) courier = startCourier(parts);
    } catch (error) {
      await stop();
      throw error;
    }
  }

  function startCourier({ storage, ledger, vault }: Parts): Courier {
    if (channels.size > 0 && config.server.public_url === null) log.warn("people are sent links, and ASSENT_PUBLIC_URL does not say where they reach this service");
    const publicUrl = (): string => (config.server.public_url ?? `http://${config.server.host}:${config.server.port}`).replace(/\/+$/, "");
    const made = createCourier({
      storage, ledger, log, clock,
      notifiers: registry.notifiers,
      duty: host.duty("deliveries"),
      messages: createMessages({ storage, clock, publicUrl, mac: (message) => vault.mac("approval-link", message) }),
      timeoutMs: config.deliveries.timeout_seconds * 1000,
      keepMs: config.deliveries.keep_days * 86_400_000,
      random: Math.random,
    });
    made.start();
    return made;
  }

  let courier: Courier | null = null;
  let unwatch = async (): Promise<void> => {};
  let stopped: Promise<void> | null = null;
  function stop(): Promise<void> {
    stopped ??= (async () => {
      state = "stopped";
      beginStop();
      await unwatch();
      await courier?.stop();
      await registry.stop();
      await parts?.ledger.close();
      await parts?.processes.stop();
      await parts?.keyUse.stop();
      await parts?.vault.close();
      await registry.storage?.close();
    })();
    return stopped;
  }

  function beginStop(): void {
    stopping.abort(new Error("the service is stopping"));
  }

  async function createAdminKey(name: string): ReturnType<Runtime["createAdminKey"]> {
    const { row, value } = await addAdminKey(after("ledger"), after("keys"), name, clock);
    return { id: row.id, name, prefix: row.prefix, scopes: row.scopes, agent_id: null, owner: null, expires_at: null, revoked_at: null, key: value };
  }

  return { fetch, start, createAdminKey, beginStop, stop, host };
}

/** The storage alone that the configuration names, not open: for commands that work on a store without serving it. */
export async function loadStorage(config: Config, log: Logger): Promise<Storage> {
  const absent = (): never => {
    throw new Error("only the storage is there");
  };
  const host = { config, log, clock: Date.now, newId: uuidv7, stopping: new AbortController().signal, duty: absent } as unknown as Host;
  for (const name of ["routes", "storage", "ledger", "policies", "keys", "agents", "vault"]) Object.defineProperty(host, name, { get: absent });
  const { storage } = await collect(await loadPlugins(config), host);
  if (storage === null) throw new StorageError("unavailable", "no plugin is configured, and so there is no store");
  return storage;
}

interface Parts {
  storage: Storage;
  ledger: OpenLedger;
  policies: PolicyService;
  keys: KeyService;
  keyUse: KeyUse;
  agents: AgentService;
  vault: OpenVault;
  processes: ProcessList;
}

async function openParts(config: Config, storage: Storage, sources: readonly string[], outbox: Outbox, instance: string, log: Logger, clock: () => number, options: RuntimeOptions): Promise<Parts> {
  await storage.open();
  if (((await storage.meta(UNFINISHED_COPY)) ?? "") !== "") throw new StorageError("unavailable", "this store is an unfinished copy of another one; run the same `assent copy` again to finish it");
  const vault = openVault(config, log);
  const origin = await pinLog(storage, config.ledger.origin, vault);
  await pinSecret(storage, vault, log, options.acceptSecret === true);
  // The ledger needs keys and policies inside its batches; they need its head. Late binding unties the knot.
  let ledger: OpenLedger | null = null;
  const head = () => (ledger === null ? storage.head() : ledger.head());
  const keyUse = createKeyUse(storage, log);
  const keys = createKeys({ storage, head, clock, newId: uuidv7, used: (id, now) => keyUse.note(id, now) });
  const agents = createAgents({ storage, head, requireRegistered: config.require_registered_agents });
  const policies = createPolicies({
    storage, head, clock, log, sources, newId: uuidv7,
    ledger: () => {
      if (ledger === null) throw new Error("the ledger is not open yet");
      return ledger;
    },
  });
  ledger = await openLedger({
    storage, vault, log, clock, origin,
    maxBatch: config.ledger.max_batch,
    verifyAtStart: config.ledger.verify_at_start,
    keptCheckpoint: config.ledger.checkpoint_file ?? join(config.data, "checkpoint"),
    acceptRollback: options.acceptRollback === true,
    outbox: outbox.write,
    policies: (tx, digest) => policies.within(tx, digest),
    confirm: (tx, credential, epoch, now) => keys.confirm(tx, credential, epoch, now),
    agentFacts: (tx, agentId, epoch, committed) => agents.within(tx, agentId, epoch, committed),
  });
  return { storage, ledger, policies, keys, keyUse, agents, vault, processes: createProcesses(storage, instance, log, clock) };
}

/** The log's name and key are kept with it: another key would start a second history under the same entries. */
async function pinLog(storage: Storage, configured: string | null, vault: OpenVault): Promise<string> {
  const first = async (): Promise<void> => {
    const name = configured ?? `assent.local/${uuidv7().slice(-12)}`;
    // Looked at again under the lock: several processes may start on one empty store.
    await storage.write(async (tx) => {
      if ((await tx.meta("log_vkey")) !== null) return;
      await tx.putMeta("log_origin", name);
      await tx.putMeta("log_vkey", formatVkey(name, vault.publicKey));
    });
  };
  if ((await storage.meta("log_vkey")) === null) await first();
  const origin = configured ?? (await storage.meta("log_origin")) ?? "";
  const pinned = await storage.meta("log_vkey");
  const vkey = formatVkey(origin, vault.publicKey);
  if (pinned === vkey) return origin;
  throw new Error(
    `the store belongs to the log with the key ${pinned ?? ""}, and the configured key is ${vkey}: put the log key (data folder, or ASSENT_LOG_KEY) and ASSENT_LOG_ORIGIN back that this store was started with`,
  );
}

/** Approval tokens of one process must be good at the others. What is kept is a MAC over nothing: it tells equal from different. */
async function pinSecret(storage: Storage, vault: OpenVault, log: Logger, accept: boolean): Promise<void> {
  const fingerprint = toHex(vault.mac("secret-fingerprint", new Uint8Array(0)));
  const pinned = await storage.write(async (tx) => {
    const stored = await tx.meta("secret_fingerprint");
    if (stored === null || accept || storage.exclusive) await tx.putMeta("secret_fingerprint", fingerprint);
    return stored;
  });
  if (pinned === null || pinned === fingerprint) return;
  if (!storage.exclusive && !accept) {
    throw new VaultError("ASSENT_SECRET is not the one that this database was started with: give every process on it the same. To change it, stop them all and start the first one with --accept-secret");
  }
  log.warn("the token secret is another one than before: approval tokens that were given out are of no use any more");
}
