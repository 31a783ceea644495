/** Opens the components of a runtime, in order. */
import type { Config } from "../config/index.ts";
import type {
  BreakGlassList,
  Groups,
  LegalHoldList,
  Processes,
  SuggestedRuleList,
  UserList,
  Vault,
} from "../contract/core-host.ts";
import type { Logger } from "../contract/host.ts";
import type { GrantList } from "../contract/grants.ts";
import type { StopList } from "../contract/stops.ts";
import { StorageError, type Storage } from "../contract/storage.ts";
import type { RequestTrace } from "../contract/tracer.ts";
import { Directory } from "../identity/directory.ts";
import { createAgents, type AgentService } from "../identity/agents.ts";
import { createGrants } from "../identity/grants.ts";
import { createStops } from "../identity/stops.ts";
import { createUsers } from "../identity/users.ts";
import { createProcesses } from "../cluster/processes.ts";
import type { Declarations } from "./plugins/declarations.ts";
import type { Outbox } from "../delivery/outbox.ts";
import { createKeyUse } from "../identity/key-use.ts";
import { KeyService } from "../identity/keys.ts";
import { createPastDecisionReader, findFlaggedActions } from "../policies/past-decisions.ts";
import { createTrialService } from "../policies/trial.ts";
import { PolicySets } from "../policies/policy-sets.ts";
import { PolicyStore, type PolicyService } from "../policies/policy-store.ts";
import { pinEnvironment } from "../policies/pin-environment.ts";
import { pinSecret } from "../identity/pin-secret.ts";
import { openPermitKeys, type PermitKeyService } from "../identity/permit-keys.ts";
import { openLogKeyring, type LogKeyring } from "../identity/log-keyring.ts";
import { assertLogKey, pinLog } from "../identity/pin-log.ts";
import { rotateLogKey, type LogKeyRotation, type RotatedLogKey } from "../identity/rotate-log-key.ts";
import { openVault } from "../identity/vault.ts";
import { createBacktestReader } from "../storage/visible-reads.ts";
import { formatVkey, parseVkey } from "../domain/checkpoint.ts";
import { equalBytes } from "../domain/hash.ts";
import { currentVkey, listVkeys } from "../domain/log-keys.ts";
import type { LedgerClock } from "../ledger/commit/clock.ts";
import { HeadReader } from "../ledger/head-reader.ts";
import { createLogKeyBook, type LogKeyBook } from "../ledger/sign/log-key-book.ts";
import { checkpointFile } from "../ledger/sign/kept-checkpoint.ts";
import { openLedger, type OpenLedger } from "../ledger/index.ts";

/** Closes one component. */
export interface Disposer {
  name: string;
  close(): Promise<void>;
}

export interface Parts {
  storage: Storage;
  ledger: OpenLedger;
  policies: PolicyService;
  keys: KeyService;
  users: UserList;
  agents: AgentService;
  stops: StopList;
  legalHolds: LegalHoldList;
  grants: GrantList;
  breakGlass: BreakGlassList;
  suggestedRules: SuggestedRuleList;
  vault: Vault;
  permits: PermitKeyService;
  /** Changes the key of the log. Rejects with VaultError for an unsuitable key. */
  rotateLogKey(rotation: LogKeyRotation): Promise<RotatedLogKey>;
  processes: Processes;
}

interface PartsOptions {
  config: Config;
  /** Storage that is not open yet. */
  storage: Storage;
  /** Names of the policy sources. */
  sources: readonly string[];
  outbox: Outbox;
  /** Contributions of plugins that are selected by name. */
  declared: Declarations;
  /** Identifies this process among those that share the store. */
  instance: string;
  log: Logger;
  trace(): RequestTrace | null;
  clock: LedgerClock;
  /** UUIDv7. */
  newId(): string;
  groups: Groups;
  acceptRollback: boolean;
  acceptSecret: boolean;
  acceptEnvironment: boolean;
  anyPermitKey: boolean;
}

/** Name of the fact in `meta` that marks a store which `assent copy` has not finished. */
export const UNFINISHED_COPY = "unfinished_copy";

/**
 * Opens all components. Adds a function to `opened` for each opened component, so that these can be closed after a
 * failure.
 */
export async function openParts(options: PartsOptions, opened: Disposer[]): Promise<Parts> {
  const { config, storage, log, newId } = options;
  const clock = options.clock.now;
  await storage.open();
  if (((await storage.meta(UNFINISHED_COPY)) ?? "") !== "")
    throw new StorageError(
      "unavailable",
      "this store is an unfinished copy of another one; run the same `assent copy` again to finish it",
    );
  const vault = openVault(config, log);
  const ring = openLogKeyring(config, log);
  const { origin, first } = await pinLog(storage, config.ledger.origin, ring.publicKey);
  const book = createLogKeyBook({ first, signer: ring.signer, verify: vault.verify, clock });
  await followLog(storage, book, ring, origin);
  await pinSecret(storage, vault, log, options.acceptSecret);
  await pinEnvironment(storage, config.environment, log, options.acceptEnvironment);
  const heads = await HeadReader.open(storage);
  const head = () => heads.read();
  const keyUse = createKeyUse(storage, log);
  opened.push({ name: "key use", close: () => keyUse.stop() });
  const directory = new Directory();
  const permits = await openPermitKeys({
    config,
    storage,
    directory,
    vault,
    isLogKey: (publicKey) => isLogKey(book, ring, origin, publicKey),
    head,
    clock,
    log,
    anyKey: options.anyPermitKey,
  });
  opened.push({ name: "permit keys", close: () => permits.close() });
  const users = createUsers({ storage, directory, groups: options.groups, head, clock });
  const keys = new KeyService({
    storage,
    directory,
    groups: options.groups,
    users,
    log,
    head,
    clock,
    newId,
    used: (id, now) => keyUse.note(id, now),
  });
  const agents = createAgents({
    storage,
    directory,
    head,
    requireRegistered: config.require_registered_agents,
    rejectionHoldsMs: config.approvals.rejection_holds_seconds * 1000,
  });
  const stops = createStops({ storage, directory, head, clock });
  const legalHolds: LegalHoldList = {
    async list() {
      const { epoch } = await head();
      await directory.follow(storage, epoch);
      return directory.legalHolds();
    },
  };
  const grants = createGrants({ storage, directory, head });
  const breakGlass: BreakGlassList = {
    async list() {
      const { epoch } = await head();
      await directory.follow(storage, epoch);
      return directory.breakGlass();
    },
  };
  const suggestedRules: SuggestedRuleList = {
    async list() {
      const { epoch } = await head();
      await directory.follow(storage, epoch);
      return directory.suggestedRules();
    },
  };
  const visibleReads = createBacktestReader(storage);
  const pastDecisions = createPastDecisionReader(storage, async () => {
    const [{ grants: every }, rules] = await Promise.all([grants.list(), suggestedRules.list()]);
    return findFlaggedActions(every, rules);
  });
  const trials = createTrialService({ storage: visibleReads, log, pastDecisions });
  opened.push({ name: "trials of policies", close: () => trials.close() });
  const policySets = new PolicySets(storage, head);
  const ledger = await openLedger({
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
    keptCheckpoint: checkpointFile(config),
    stateFolder: config.state,
    checkpointLog:
      config.ledger.checkpoint_log === null
        ? null
        : { path: config.ledger.checkpoint_log, everyMs: config.ledger.checkpoint_log_seconds * 1000 },
    acceptRollback: options.acceptRollback,
    outbox: options.outbox.write,
    entryFault: options.declared.entryFault,
    policies: (tx, digest) => policySets.within(tx, digest),
    follow: (tx, { epoch }) => directory.follow(tx, epoch),
    confirm: (tx, credential, epoch, now) => keys.confirm(tx, credential, epoch, now),
    stops: () => directory.stops(),
    legalHolds: () => directory.legalHolds(),
    users: () => directory.users(),
    grants: directory.grants,
    delegations: () => directory.delegations(),
    breakGlass: () => directory.breakGlass(),
    suggestedRules: () => directory.suggestedRules(),
    confirmUser: users.confirm,
    agentFacts: (tx, agentId, epoch, committed) => agents.within(tx, agentId, epoch, committed),
  });
  opened.push({ name: "ledger", close: () => ledger.close() });
  const policies = new PolicyStore({
    storage,
    sets: policySets,
    visibleReads,
    trials,
    clock,
    log,
    sources: options.sources,
    channels: Object.keys(config.channels),
    newId,
    ledger,
  });
  return {
    storage,
    ledger,
    policies,
    keys,
    users,
    agents,
    stops,
    legalHolds,
    grants,
    breakGlass,
    suggestedRules,
    vault,
    permits,
    rotateLogKey: (rotation) => rotateLogKey({ ledger, book, ring, signsPermits: permits.signs, clock }, rotation),
    processes: createProcesses(storage, options.instance),
  };
}

/** Throws VaultError if this process does not have the log's key. */
async function followLog(storage: Storage, book: LogKeyBook, ring: LogKeyring, origin: string): Promise<void> {
  await book.follow(storage, (await storage.head()).epoch);
  const { name, publicKey } = parseVkey(currentVkey(book.keys()));
  // Finish a rotation that was interrupted before the file was put in place.
  ring.settle(name, publicKey);
  assertLogKey(book.keys(), ring.signer(name, publicKey) !== null, formatVkey(origin, ring.publicKey));
}

function isLogKey(book: LogKeyBook, ring: LogKeyring, origin: string, publicKey: Uint8Array): boolean {
  return equalBytes(publicKey, ring.publicKey) || listVkeys(book.keys()).includes(formatVkey(origin, publicKey));
}
