/**
 * The active policy set: compiled once by digest, switched by a ledger entry. Sets and versions
 * are immutable and kept forever, so that any decision can be made again.
 */
import type { ActivePolicies } from "../contract/active-policies.ts";
import { PreparationRequired } from "../contract/ledger.ts";
import type { Policies } from "../contract/policies.ts";
import {
  PolicySourceError,
  type PolicyBundle,
  type PolicyFault,
  type PolicyOffer,
  type PolicySource,
  type PolicyState,
} from "../contract/policy-source.ts";
import { StorageError, type LedgerHead, type StorageReader } from "../contract/storage.ts";
import type { Logger } from "../contract/host.ts";
import type { Ledger } from "../contract/ledger.ts";
import { sha256Hex, utf8 } from "../domain/hash.ts";
import {
  compilePolicySet,
  emptyPolicySet,
  explainCompileFault,
  isPrecompiled,
  PolicyCompileError,
  precompilePolicySet,
} from "../domain/policy/compile/compile.ts";
import { findUnknownChannels } from "../domain/policy/check/unknown-channels.ts";
import type { PolicySetDocument } from "../domain/policy/policy-types.ts";
import { type BacktestReader, reportShadowPolicy } from "./backtest.ts";
import type { PolicyTrials } from "../contract/trials.ts";
import { checkBundle } from "./bundle.ts";
import {
  activateBundle,
  readBasis,
  commitPolicySet,
  findSetSource,
  planPolicySetOrRefuse,
  recordRefusal,
} from "./activate.ts";

/** CompiledPolicySet sets kept besides the active one: replay of old decisions uses them. */
const KEPT_SETS = 16;
/** Maximum number of times that a source is read again because another process activated its policies first. */
const OFFERS = 5;

interface PoliciesOptions {
  storage: StorageReader;
  visibleReads: BacktestReader;
  sources: readonly string[];
  /** Names of the channels that the configuration has. */
  channels: readonly string[];
  ledger(): Ledger;
  head(): Promise<LedgerHead>;
  newId(): string;
  clock(): number;
  log: Logger;
  trials: PolicyTrials;
}

export interface PolicyService extends Policies {
  /** The set under the lock, for the sequencer. Rejects with PreparationRequired. */
  within(tx: StorageReader, digest: string | null): Promise<ActivePolicies>;
  /** Active policies of sources that are no longer configured. */
  orphans(): Promise<string[]>;
  /** Loads a source and activates its policies. If it has faults, the last valid set stays active and `state` reports them. */
  sync(source: PolicySource): Promise<void>;
}

export function createPolicies(options: PoliciesOptions): PolicyService {
  const compiled = new Map<string, ActivePolicies>();
  const empty: ActivePolicies = { digest: null, compiled: emptyPolicySet(), source: null };
  const trouble = new Map<string, { since: number; faults: PolicyFault[]; source: Record<string, string> }>();
  let active: ActivePolicies = empty;
  let syncing: Promise<unknown> = Promise.resolve();

  async function find(reader: StorageReader, digest: string | null, locked: boolean): Promise<ActivePolicies | null> {
    if (digest === null) return empty;
    const kept = compiled.get(digest);
    if (kept !== undefined) return kept;
    const row = await reader.policySet(digest);
    if (row === null) return null;
    if (sha256Hex(utf8(row.document)) !== digest)
      throw new StorageError("corrupt", `the stored policy set ${digest} does not hash to its digest`);
    const document = JSON.parse(row.document) as PolicySetDocument;
    if (locked && !isPrecompiled(document))
      throw new PreparationRequired("a policy set", () => precompilePolicySet(document));
    const set: ActivePolicies = { digest, compiled: compilePolicySet(document), source: null };
    compiled.set(digest, set);
    for (const oldest of compiled.keys()) {
      if (compiled.size <= KEPT_SETS) break;
      if (oldest !== active.digest && oldest !== digest) compiled.delete(oldest);
    }
    return set;
  }

  async function activeSet(reader: StorageReader, digest: string | null, locked: boolean): Promise<ActivePolicies> {
    if (digest === active.digest) return active;
    const next = await find(reader, digest, locked);
    if (next === null) throw new StorageError("corrupt", `the active policy set ${digest ?? ""} is not in the store`);
    // Read anew with each switch: a set can come back, from another commit.
    active = { ...next, source: digest === null ? null : await findSetSource(reader, digest) };
    return active;
  }

  async function offerOf(name: string): Promise<PolicyOffer> {
    const refused = trouble.get(name);
    if (refused !== undefined) return { name, source: refused.source, accepted: false };
    const taken = await readBasis(options.storage, name);
    const { source = {} } = (taken === null ? {} : JSON.parse(taken)) as { source?: Record<string, string> };
    return { name, source, accepted: taken !== null };
  }

  /** Loads and activates. What was loaded before another process activated something newer must not replace it. */
  async function offer(source: PolicySource): Promise<{ bundle: PolicyBundle; digest: string } | null> {
    for (let offers = 1; ; offers++) {
      const basis = { value: await readBasis(options.storage, source.name) };
      const bundle = await load(source);
      if (bundle === null) return null;
      const digest = await service.activate(source.name, bundle, null, basis);
      if (digest !== null) return { bundle, digest };
      if (offers === OFFERS)
        throw new StorageError(
          "unavailable",
          `other processes activated what the policy source "${source.name}" has ${OFFERS} times in a row`,
        );
    }
  }

  async function sync(source: PolicySource): Promise<void> {
    try {
      const offered = await offer(source);
      await service.current();
      trouble.delete(source.name);
      if (offered === null) return;
      const { bundle, digest } = offered;
      options.log.info("policies are active", {
        source: source.name,
        policies: bundle.policies.length,
        policy_set: digest,
      });
      const unknown = findUnknownChannels(
        bundle.policies.map(({ document }) => document),
        options.channels,
      );
      // Without any channel, nobody expects to be notified; "assent doctor" reports it.
      if (unknown.length > 0 && options.channels.length > 0)
        options.log.warn("policies name channels that are not configured, so no one is notified", {
          source: source.name,
          channels: [...new Set(unknown.map(({ channel }) => channel))].join(", "),
        });
    } catch (error) {
      const faults = faultsOf(source.name, error);
      if (faults === null) throw error;
      const before = trouble.get(source.name);
      const from = error instanceof PolicySourceError ? error.source : {};
      trouble.set(source.name, { since: before?.since ?? options.clock(), faults, source: from });
      options.log.error(`policies were not taken: ${(error as Error).message}; the last good set stays`, {
        source: source.name,
        faults: faults.map(formatFault),
      });
      // Once for each fault, however often the source is looked at.
      if (JSON.stringify(before?.faults) === JSON.stringify(faults)) return;
      await options
        .ledger()
        .transact(async (tx) => recordRefusal(tx, { ...from, source: source.name }, faults.map(formatFault)));
    }
  }

  const service: PolicyService = {
    sources: options.sources,
    async orphans() {
      const rows = await options.storage.policies();
      return rows
        .filter(
          (row) => row.managed_by !== null && row.active_version !== null && !options.sources.includes(row.managed_by),
        )
        .map(({ name }) => name);
    },
    within: (tx, digest) => activeSet(tx, digest, true),
    current: async () => activeSet(options.storage, (await options.head()).policy_set, false),
    byDigest: (digest) => find(options.storage, digest, false),
    activate: async (sourceName, bundle, by, basis) => {
      checkBundle(sourceName, bundle);
      return options
        .ledger()
        .transact((tx) =>
          activateBundle(tx, { newId: options.newId, sources: options.sources }, sourceName, bundle, by, basis),
        );
    },
    trials: options.trials,
    shadowReport: (policy, range) => reportShadowPolicy(options.visibleReads, policy, range),
    plan: planPolicySetOrRefuse,
    commit: commitPolicySet,
    async state(): Promise<PolicyState> {
      // Not `active`: that is the set of the last batch, which may be behind, or was rolled back.
      const { digest, compiled: set, source } = await this.current();
      const faults = [...trouble.values()];
      return {
        digest,
        count: set.document.policies.length,
        source,
        faults: faults.flatMap((t) => t.faults),
        stale_since: faults.length === 0 ? null : Math.min(...faults.map((t) => t.since)),
        offers: await Promise.all(options.sources.map(offerOf)),
      };
    },
    sync(source) {
      // One after another: two loads of one source must not overtake each other.
      const next = syncing.then(() => sync(source));
      syncing = next.catch(() => undefined);
      return next;
    },
  };
  return service;
}

async function load(source: PolicySource): Promise<PolicyBundle | null> {
  try {
    return await source.load();
  } catch (error) {
    if (error instanceof PolicySourceError || error instanceof StorageError) throw error;
    throw new Error(
      `the policy source "${source.name}" failed to load: ${error instanceof Error ? error.message : String(error)}`,
      { cause: error },
    );
  }
}

/** Returns the faults of the policies that a source offered; null if the error has another cause. */
function faultsOf(source: string, error: unknown): PolicyFault[] | null {
  if (error instanceof PolicySourceError)
    return error.faults.length > 0
      ? error.faults
      : [{ file: source, line: null, column: null, message: error.message }];
  if (!(error instanceof PolicyCompileError)) return null;
  return error.faults.map((fault) => ({ file: source, line: null, column: null, message: explainCompileFault(fault) }));
}

export function formatFault(fault: PolicyFault): string {
  const at = [fault.file, fault.line, fault.column].filter((part) => part !== null).join(":");
  return `${at}: ${fault.message}`;
}
