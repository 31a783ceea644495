/** Opens the components of a runtime, in order. */
import { join } from "node:path";
import type { Config } from "../config/index.ts";
import type { Groups, Processes, Vault } from "../contract/core-host.ts";
import type { Logger } from "../contract/host.ts";
import type { SourceLocation } from "../contract/policy-source.ts";
import type { RowSeals } from "../contract/row-seals.ts";
import type { Storage } from "../contract/storage.ts";
import type { RequestTrace } from "../contract/tracer.ts";
import type { AgentService } from "../identity/agents.ts";
import { verifyPastAction } from "../audit/verify-past-action.ts";
import { createProcessList } from "../cluster/processes.ts";
import type { Declarations } from "./plugins/declarations.ts";
import type { Messenger } from "../contract/messenger.ts";
import { createHeldCredentials, type HeldCredentials } from "../identity/held-credentials.ts";
import type { KeyService } from "../identity/keys.ts";
import type { UserService } from "../identity/users.ts";
import { createTrialService } from "../policies/trial.ts";
import { PolicySets } from "../policies/policy-sets.ts";
import { PolicyStore, type PolicyService } from "../policies/policy-store.ts";
import type { PermitKeyService } from "../identity/permit-keys.ts";
import { rotateLogKey, type LogKeyRotation, type RotatedLogKey } from "../identity/rotate-log-key.ts";
import type { LedgerClock } from "../ledger/commit/clock.ts";
import { checkpointFilePath } from "../ledger/sign/checkpoint-file.ts";
import { openLedger, type OpenLedger } from "../ledger/index.ts";
import type { Disposer } from "./disposer.ts";
import { openIdentityServices, type IdentityServices } from "./open-identity.ts";
import { openStore, type OpenStore } from "./open-store.ts";
import { restoreRows } from "./restore-rows.ts";

export interface ServiceParts {
  storage: Storage;
  ledger: OpenLedger;
  policies: PolicyService;
  keys: KeyService;
  heldCredentials: HeldCredentials;
  users: UserService;
  agents: AgentService;
  states: IdentityServices["states"];
  vault: Vault;
  seals: RowSeals;
  permits: PermitKeyService;
  /** Changes the key of the log. Rejects with VaultError for an unsuitable key. */
  rotateLogKey(rotation: LogKeyRotation): Promise<RotatedLogKey>;
  processes: Processes;
}

interface PartsOptions {
  config: Config;
  /** A storage that is not open yet. */
  storage: Storage;
  /** Names of the policy sources. */
  sources: readonly string[];
  /** Locations of the baseline sources, keyed by the name of the source. */
  baselines: ReadonlyMap<string, SourceLocation>;
  /** Writes the messages of a batch; null if there are none. */
  outbox: Messenger["write"];
  /** Names that plugins declare. */
  declared: Declarations;
  /** Identifies this process among the processes that share the store. */
  instance: string;
  log: Logger;
  trace(): RequestTrace | null;
  clock: LedgerClock;
  /** Returns a new UUIDv7. */
  newId(): string;
  groups: Groups;
  stopping: AbortSignal;
  acceptRollback: boolean;
  acceptSecret: boolean;
  acceptEnvironment: boolean;
  anyPermitKey: boolean;
}

/**
 * Opens all components. Adds a disposer to `opened` for each opened component, so that the caller can close it after a
 * failure.
 */
export async function openServiceParts(options: PartsOptions, opened: Disposer[]): Promise<ServiceParts> {
  const { config, log, newId } = options;
  const clock = options.clock.now;
  const store = await openStore({ ...options, clock });
  const { storage, vault, seals, heads, book, ring } = store;
  const identity = await openIdentityServices(store, { ...options, clock }, opened);
  const trials = createTrialService({ log });
  opened.push({ name: "trials of policies", close: () => trials.close() });
  const sets = new PolicySets(storage, () => heads.read());
  const ledger = await openServiceLedger(store, identity, sets, options);
  opened.push({ name: "ledger", close: () => ledger.close() });
  const { rest } = await restoreRows({
    storage,
    ledger,
    compiled: (digest) => sets.past(storage, digest),
    entries: config.ledger.verify_at_start,
    now: clock,
    log,
    stopping: options.stopping,
  });
  opened.push({ name: "restored rows", close: () => rest });
  const policies = new PolicyStore({
    storage,
    sets,
    trials,
    clock,
    log,
    sources: options.sources,
    baselines: options.baselines,
    channels: Object.keys(config.channels),
    reactions: options.declared.reactions,
    newId,
    ledger,
  });
  const { directory: _, ...people } = identity;
  const heldCredentials = createHeldCredentials({
    refresh: (credential) => identity.keys.refresh(credential),
    seenEpoch: () => heads.continuity.seen().epoch,
    onEpoch: (listener) => heads.onEpoch(listener),
    scopes: options.declared.scopes,
    clock,
    stopping: options.stopping,
  });
  opened.push({ name: "held credentials", close: async () => heldCredentials.stop() });
  return {
    storage,
    ledger,
    policies,
    ...people,
    heldCredentials,
    vault,
    seals,
    rotateLogKey: (rotation) =>
      rotateLogKey({ ledger, book, ring, signsPermits: (key) => identity.permits.signs(key), clock }, rotation),
    processes: createProcessList(storage, options.instance),
  };
}

function openServiceLedger(
  { storage, vault, seals, heads, book, origin }: OpenStore,
  { directory, keys, users, agents }: IdentityServices,
  policySets: PolicySets,
  options: PartsOptions,
): Promise<OpenLedger> {
  const { config, log } = options;
  return openLedger({
    storage,
    heads,
    instance: options.instance,
    verify: vault.verify,
    logKeys: book,
    log,
    trace: options.trace,
    clock: options.clock,
    origin,
    maxBatch: config.ledger.max_batch,
    verifyAtStart: config.ledger.verify_at_start,
    keptCheckpoint: checkpointFilePath(config),
    keptHead: join(config.data, "head"),
    stateFolder: config.state,
    checkpointLog:
      config.ledger.checkpoint_log === null
        ? null
        : { path: config.ledger.checkpoint_log, everyMs: config.ledger.checkpoint_log_seconds * 1000 },
    acceptRollback: options.acceptRollback,
    outbox: options.outbox,
    seals,
    entryFault: options.declared.entryFault,
    policies: (tx, digest) => policySets.within(tx, digest),
    verifyPast: (tx, ...past) => verifyPastAction(...past, (digest) => policySets.past(tx, digest)),
    follow: (tx, head) => directory.follow(tx, head),
    confirm: (tx, credential, epoch, now) => keys.confirm(tx, credential, epoch, now),
    states: () => directory.current(),
    bars: options.declared.bars,
    confirmUser: users.confirm,
    agentFacts: (...args) => agents.within(...args),
  });
}
