/** Activates the policies of sources and of the API. Each activation is a ledger entry. */
import type { ActivePolicies } from "../contract/active-policies.ts";
import type { BacktestRange, BacktestReport } from "../contract/backtest.ts";
import type { Credential, Logger } from "../contract/host.ts";
import type { Ledger } from "../contract/ledger.ts";
import type { Policies } from "../contract/policies.ts";
import {
  PolicySourceError,
  type PolicyBundle,
  type PolicyFault,
  type PolicyOffer,
  type PolicySource,
  type PolicyState,
} from "../contract/policy-source.ts";
import { StorageError, type StorageReader } from "../contract/storage.ts";
import type { PolicyTrials } from "../contract/trials.ts";
import { findUnknownChannels } from "../domain/policy/check/unknown-channels.ts";
import { explainCompileFault, PolicyCompileError } from "../domain/policy/compile/compile.ts";
import { activateBundle, commitPolicySet, planPolicySetOrRefuse, readBasis, recordRefusal } from "./activate.ts";
import { type BacktestReader, reportShadowPolicy } from "./backtest.ts";
import { checkBundle } from "./bundle.ts";
import type { PolicySets } from "./policy-sets.ts";

/** Maximum number of times that a source is read again because another process activated its policies first. */
const OFFERS = 5;

interface PoliciesOptions {
  storage: StorageReader;
  sets: PolicySets;
  visibleReads: BacktestReader;
  sources: readonly string[];
  /** Names of the channels that the configuration has. */
  channels: readonly string[];
  ledger: Pick<Ledger, "transact">;
  newId(): string;
  clock(): number;
  log: Logger;
  trials: PolicyTrials;
}

export interface PolicyService extends Policies {
  /** Active policies of sources that are no longer configured. */
  orphans(): Promise<string[]>;
  /** Loads a source and activates its policies. If it has faults, the last valid set stays active and `state` reports them. */
  sync(source: PolicySource): Promise<void>;
}

/** Why the newest policies of a source are not active. */
interface Trouble {
  since: number;
  faults: PolicyFault[];
  source: Record<string, string>;
}

export class PolicyStore implements PolicyService {
  readonly sources: readonly string[];
  readonly trials: PolicyTrials;
  readonly plan = planPolicySetOrRefuse;
  readonly commit = commitPolicySet;
  private readonly options: PoliciesOptions;
  private readonly trouble = new Map<string, Trouble>();
  private syncing: Promise<unknown> = Promise.resolve();

  constructor(options: PoliciesOptions) {
    this.options = options;
    this.sources = options.sources;
    this.trials = options.trials;
  }

  current(): Promise<ActivePolicies> {
    return this.options.sets.current();
  }

  byDigest(digest: string | null): Promise<ActivePolicies | null> {
    return this.options.sets.byDigest(digest);
  }

  async shadowReport(policy: string, range: BacktestRange): Promise<BacktestReport> {
    const { compiled } = await this.current();
    const inPlaceOf = compiled.policies.find(({ name }) => name === policy)?.suggested ?? null;
    return reportShadowPolicy(this.options.visibleReads, policy, inPlaceOf, range);
  }

  async orphans(): Promise<string[]> {
    const rows = await this.options.storage.policies();
    return rows
      .filter((row) => row.managed_by !== null && row.active_version !== null && !this.sources.includes(row.managed_by))
      .map(({ name }) => name);
  }

  async activate(
    sourceName: string,
    bundle: PolicyBundle,
    by: Credential | null,
    basis?: { value: string | null },
  ): Promise<string | null> {
    checkBundle(sourceName, bundle);
    const { newId, sources } = this.options;
    return this.options.ledger.transact((tx) => activateBundle(tx, { newId, sources }, sourceName, bundle, by, basis));
  }

  async state(): Promise<PolicyState> {
    // Do not use the set of the last batch, which may be outdated or rolled back.
    const { digest, compiled, source } = await this.current();
    const trouble = [...this.trouble.values()];
    return {
      digest,
      count: compiled.document.policies.length,
      source,
      faults: trouble.flatMap(({ faults }) => faults),
      stale_since: trouble.length === 0 ? null : Math.min(...trouble.map(({ since }) => since)),
      offers: await Promise.all(this.sources.map((name) => this.offerOf(name))),
    };
  }

  sync(source: PolicySource): Promise<void> {
    // Load sources one at a time, because two loads of one source must not overtake each other.
    const next = this.syncing.then(() => this.syncNow(source));
    this.syncing = next.catch(() => undefined);
    return next;
  }

  private async syncNow(source: PolicySource): Promise<void> {
    try {
      const offered = await this.offer(source);
      await this.current();
      this.trouble.delete(source.name);
      if (offered !== null) this.reportActivation(source, offered);
    } catch (error) {
      await this.reportTrouble(source, error);
    }
  }

  /**
   * Loads and activates. If another process activated something newer meanwhile, the loaded content must not replace
   * it.
   */
  private async offer(source: PolicySource): Promise<{ bundle: PolicyBundle; digest: string } | null> {
    for (let offers = 1; ; offers++) {
      const basis = { value: await readBasis(this.options.storage, source.name) };
      const bundle = await load(source);
      if (bundle === null) return null;
      const digest = await this.activate(source.name, bundle, null, basis);
      if (digest !== null) return { bundle, digest };
      if (offers === OFFERS)
        throw new StorageError(
          "unavailable",
          `other processes activated what the policy source "${source.name}" has ${OFFERS} times in a row`,
        );
    }
  }

  private reportActivation(source: PolicySource, { bundle, digest }: { bundle: PolicyBundle; digest: string }): void {
    const { log, channels } = this.options;
    log.info("policies are active", { source: source.name, policies: bundle.policies.length, policy_set: digest });
    const unknown = findUnknownChannels(
      bundle.policies.map(({ document }) => document),
      channels,
    );
    // If no channel is configured, approvers do not expect notifications; "assent doctor" reports it.
    if (unknown.length > 0 && channels.length > 0)
      log.warn("policies name channels that are not configured, so no one is notified", {
        source: source.name,
        channels: [...new Set(unknown.map(({ channel }) => channel))].join(", "),
      });
  }

  /** Logs and records the faults of a source. Throws the error if it has another cause. */
  private async reportTrouble(source: PolicySource, error: unknown): Promise<void> {
    const { clock, log, ledger } = this.options;
    const faults = faultsOf(source.name, error);
    if (faults === null) throw error;
    const before = this.trouble.get(source.name);
    const from = error instanceof PolicySourceError ? error.source : {};
    this.trouble.set(source.name, { since: before?.since ?? clock(), faults, source: from });
    log.error(`policies were not taken: ${(error as Error).message}; the last good set stays`, {
      source: source.name,
      faults: faults.map(formatFault),
    });
    // Log each fault once, however often the source is checked.
    if (JSON.stringify(before?.faults) === JSON.stringify(faults)) return;
    await ledger.transact(async (tx) => recordRefusal(tx, { ...from, source: source.name }, faults.map(formatFault)));
  }

  private async offerOf(name: string): Promise<PolicyOffer> {
    const refused = this.trouble.get(name);
    if (refused !== undefined) return { name, source: refused.source, accepted: false };
    const taken = await readBasis(this.options.storage, name);
    const { source = {} } = (taken === null ? {} : JSON.parse(taken)) as { source?: Record<string, string> };
    return { name, source, accepted: taken !== null };
  }
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
