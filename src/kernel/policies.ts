/**
 * The active policy set: compiled once by digest, switched by a ledger entry. Sets and versions
 * are immutable and kept for ever, so that any decision can be made again.
 */
import type { ActivePolicies, Policies, PolicyState } from "../contract/host.ts";
import { PolicySourceError, type PolicyBundle, type PolicyFault, type PolicySource } from "../contract/policy-source.ts";
import { StorageError, type LedgerHead, type StorageReader } from "../contract/storage.ts";
import type { Ledger, Logger } from "../contract/host.ts";
import { sha256Hex, utf8 } from "../domain/hash.ts";
import { compilePolicySet, emptyPolicySet, PolicyCompileError } from "../domain/policy/compile.ts";
import type { PolicySetDocument } from "../domain/policy/types.ts";
import { checkBundle } from "./policy-bundle.ts";
import { activateBundle, basisOf, commitSet, sourceOfSet, planSetOrRefuse, recordRefusal } from "./policy-set.ts";

/** Compiled sets kept besides the active one: replay of old decisions uses them. */
const KEPT_SETS = 16;
/** How often a source is asked again because another process was faster. */
const OFFERS = 5;

export interface PoliciesOptions {
  storage: StorageReader;
  sources: readonly string[];
  ledger(): Ledger;
  head(): Promise<LedgerHead>;
  newId(): string;
  clock(): number;
  log: Logger;
}

export interface PolicyService extends Policies {
  /** The set under the lock, for the sequencer. */
  within(tx: StorageReader, digest: string | null): Promise<ActivePolicies>;
  /** Active policies of sources that are not configured any more. */
  orphans(): Promise<string[]>;
  /** Loads a source and activates it; a faulty one keeps the last good set and is told in `state`. */
  sync(source: PolicySource): Promise<void>;
}

export function createPolicies(options: PoliciesOptions): PolicyService {
  const compiled = new Map<string, ActivePolicies>();
  const empty: ActivePolicies = { digest: null, compiled: emptyPolicySet(), source: null };
  const trouble = new Map<string, { since: number; faults: PolicyFault[] }>();
  let active: ActivePolicies = empty;
  let syncing: Promise<unknown> = Promise.resolve();

  async function find(reader: StorageReader, digest: string | null): Promise<ActivePolicies | null> {
    if (digest === null) return empty;
    const known = compiled.get(digest);
    if (known !== undefined) return known;
    const row = await reader.policySet(digest);
    if (row === null) return null;
    if (sha256Hex(utf8(row.document)) !== digest) throw new StorageError("corrupt", `the stored policy set ${digest} does not hash to its digest`);
    const made: ActivePolicies = { digest, compiled: compilePolicySet(JSON.parse(row.document) as PolicySetDocument), source: null };
    compiled.set(digest, made);
    for (const oldest of compiled.keys()) {
      if (compiled.size <= KEPT_SETS) break;
      if (oldest !== active.digest && oldest !== digest) compiled.delete(oldest);
    }
    return made;
  }

  async function within(reader: StorageReader, digest: string | null): Promise<ActivePolicies> {
    if (digest === active.digest) return active;
    const found = await find(reader, digest);
    if (found === null) throw new StorageError("corrupt", `the active policy set ${digest ?? ""} is not in the store`);
    // Read anew with each switch: a set can come back, from another commit.
    active = { ...found, source: digest === null ? null : await sourceOfSet(reader, digest) };
    return active;
  }

  /** Loads and activates. What was loaded before another process activated something newer must not replace it. */
  async function offer(source: PolicySource): Promise<{ bundle: PolicyBundle; digest: string } | null> {
    for (let offers = 1; ; offers++) {
      const basis = { value: await basisOf(options.storage, source.name) };
      const bundle = await load(source);
      if (bundle === null) return null;
      const digest = await service.activate(source.name, bundle, null, basis);
      if (digest !== null) return { bundle, digest };
      if (offers === OFFERS) throw new StorageError("unavailable", `other processes activated what the policy source "${source.name}" has ${OFFERS} times in a row`);
    }
  }

  async function sync(source: PolicySource): Promise<void> {
    try {
      const offered = await offer(source);
      await service.current();
      trouble.delete(source.name);
      if (offered === null) return;
      const { bundle, digest } = offered;
      options.log.info("policies are active", { source: source.name, policies: bundle.policies.length, policy_set: digest });
    } catch (error) {
      const faults = faultsOf(source.name, error);
      if (faults === null) throw error;
      const before = trouble.get(source.name);
      trouble.set(source.name, { since: before?.since ?? options.clock(), faults });
      options.log.error(`policies were not taken: ${(error as Error).message}; the last good set stays`, { source: source.name, faults: faults.map(formatFault) });
      // Once for each fault, however often the source is looked at.
      if (JSON.stringify(before?.faults) === JSON.stringify(faults)) return;
      const from = error instanceof PolicySourceError ? error.source : {};
      await options.ledger().submit(async (tx) => recordRefusal(tx, { ...from, source: source.name }, faults.map(formatFault)));
    }
  }

  const service: PolicyService = {
    sources: options.sources,
    async orphans() {
      const rows = await options.storage.policies();
      return rows.filter((row) => row.managed_by !== null && row.active_version !== null && !options.sources.includes(row.managed_by)).map(({ name }) => name);
    },
    within,
    current: async () => within(options.storage, (await options.head()).policy_set),
    byDigest: (digest) => find(options.storage, digest),
    activate: async (sourceName, bundle, by, basis) => {
      checkBundle(sourceName, bundle);
      return options.ledger().submit((tx) => activateBundle(tx, { newId: options.newId, sources: options.sources }, sourceName, bundle, by, basis));
    },
    plan: planSetOrRefuse,
    commit: commitSet,
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
    throw new Error(`the policy source "${source.name}" failed to load: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
}

/** What is wrong with what a source offered; null when the error is of another kind. */
function faultsOf(source: string, error: unknown): PolicyFault[] | null {
  if (error instanceof PolicySourceError) return error.faults.length > 0 ? error.faults : [{ file: source, line: null, column: null, message: error.message }];
  if (!(error instanceof PolicyCompileError)) return null;
  return error.faults.map(({ policy, rule, message }) => ({ file: source, line: null, column: null, message: `policy "${policy}"${rule === null ? "" : `, rule "${rule}"`} ${message}` }));
}

export function formatFault(fault: PolicyFault): string {
  const at = [fault.file, fault.line, fault.column].filter((part) => part !== null).join(":");
  return `${at}: ${fault.message}`;
}
