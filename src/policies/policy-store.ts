/** Activates policies of sources and of the API. Records each activation in the ledger. */
import { isDeepStrictEqual } from "node:util";
import type { ActivePolicies } from "../contract/active-policies.ts";
import type { Credential, Logger } from "../contract/host.ts";
import type { Ledger, LedgerTransaction } from "../contract/ledger.ts";
import type { PlannedPolicySet, Policies, PolicyActivation } from "../contract/policies.ts";
import {
  PolicySourceError,
  type PolicyBundle,
  type PolicyFault,
  type PolicySourceState,
  type PolicySource,
  type PolicyState,
  type SourceLocation,
  type UnloadedFile,
} from "../contract/policy-source.ts";
import { StorageError, type StorageReader } from "../contract/storage.ts";
import type { Reaction } from "../contract/reaction.ts";
import type { PolicyTrials } from "../contract/trials.ts";
import { findUnknownChannels } from "../domain/policy/check/unknown-channels.ts";
import { explainCompileFault, PolicyCompileError } from "../domain/policy/compile/compile.ts";
import {
  activateBundle,
  type BundleActivation,
  commitPolicySet,
  planPolicySetOrRefuse,
  readRefusedSource,
  recordRefusal,
} from "./activate.ts";
import { type AcceptedBundle, isAcceptedBaseline, readAcceptedBundle } from "./baseline.ts";
import { validateBundle } from "./bundle.ts";
import type { PolicySets } from "./policy-sets.ts";
import { explainUnloaded } from "./unloaded-files.ts";

/** Maximum number of attempts to load a source while another process activates bundles of the same source. */
const MAX_LOADS = 5;

interface PoliciesOptions {
  storage: StorageReader;
  sets: PolicySets;
  sources: readonly string[];
  baselines: ReadonlyMap<string, SourceLocation>;
  /** Names of the configured channels. */
  channels: readonly string[];
  ledger: Pick<Ledger, "transact">;
  /** Reactions of features to the activation of a policy set. */
  reactions: readonly Reaction[];
  newId(): string;
  clock(): number;
  log: Logger;
  trials: PolicyTrials;
}

export interface PolicyService extends Policies {
  /** Returns the active policies of sources that are no longer configured. */
  orphans(): Promise<string[]>;
  /**
   * Loads a source and activates its policies. If the policies have faults, the last valid set stays active and `state`
   * reports the faults.
   */
  sync(source: PolicySource): Promise<void>;
  /** Returns true if the newest content of the source was rejected in this process. */
  isRejected(sourceName: string): boolean;
}

/** The reason why the newest policies of a source are not active. */
interface Trouble {
  since: number;
  faults: PolicyFault[];
  source: Record<string, string>;
  /** Time since which the source cannot be read; null if its content was read and rejected. */
  unreadSince: number | null;
}

/** The bundle that had last been accepted from a source when its content was loaded. */
interface Basis {
  value: string | null;
}

/** An accepted bundle. */
interface AcceptedOffer extends BundleActivation {
  bundle: PolicyBundle;
}

export class PolicyStore implements PolicyService {
  readonly sources: readonly string[];
  readonly baselines: ReadonlyMap<string, SourceLocation>;
  readonly trials: PolicyTrials;
  readonly commit: Policies["commit"] = (...args) => commitPolicySet(...args, this.options.reactions);
  private readonly options: PoliciesOptions;
  private readonly trouble = new Map<string, Trouble>();
  /** Files that look like policies and are not loaded, keyed by source. */
  private readonly unloaded = new Map<string, readonly UnloadedFile[]>();
  /** The last load of each source, by the source's name. */
  private readonly syncing = new Map<string, Promise<unknown>>();

  constructor(options: PoliciesOptions) {
    this.options = options;
    this.sources = options.sources;
    this.baselines = options.baselines;
    this.trials = options.trials;
  }

  current(): Promise<ActivePolicies> {
    return this.options.sets.current();
  }

  latest(): ActivePolicies {
    return this.options.sets.latest();
  }

  byDigest(digest: string | null): Promise<ActivePolicies | null> {
    return this.options.sets.byDigest(digest);
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
    return (await this.activateBundle(sourceName, bundle, by, basis))?.digest ?? null;
  }

  isRejected(sourceName: string): boolean {
    return this.trouble.has(sourceName);
  }

  plan(tx: LedgerTransaction, edits: ReadonlyMap<string, PolicyActivation | null>): Promise<PlannedPolicySet> {
    return planPolicySetOrRefuse(tx, edits, this.baselines);
  }

  private async activateBundle(
    sourceName: string,
    bundle: PolicyBundle,
    by: Credential | null,
    basis?: { value: string | null },
  ): Promise<BundleActivation | null> {
    validateBundle(sourceName, bundle);
    return this.options.ledger.transact((tx) => activateBundle(tx, this.options, sourceName, bundle, by, basis));
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
      offers: await Promise.all(this.sources.map((name) => this.readSourceState(name))),
      unloaded: [...this.unloaded].flatMap(([source, files]) => files.map((each) => ({ ...each, source }))),
    };
  }

  sync(source: PolicySource): Promise<void> {
    // Finish an earlier load of the source first, so that older content cannot replace newer content. Do not wait for
    // other sources, one of which may be unreachable.
    const earlier = this.syncing.get(source.name) ?? Promise.resolve();
    const next = earlier.then(() => this.syncNow(source));
    this.syncing.set(
      source.name,
      next.catch(() => undefined),
    );
    return next;
  }

  private async syncNow(source: PolicySource): Promise<void> {
    for (let loads = 1; loads <= MAX_LOADS; loads++) {
      const basis = { value: await readAcceptedBundle(this.options.storage, source.name) };
      try {
        const offered = await this.offer(source, basis);
        // During the load, another process activated a newer bundle, which the loaded content must not replace.
        if (offered === "superseded") continue;
        await this.current();
        this.trouble.delete(source.name);
        if (offered !== null) this.reportActivation(source, offered);
        return;
      } catch (error) {
        return this.reportTrouble(source, error, basis);
      }
    }
    throw new StorageError(
      "unavailable",
      `another process activated a bundle of the policy source "${source.name}" during each of ${MAX_LOADS} loads`,
    );
  }

  /** Loads a source and activates its policies. Resolves to null if another process handles the source. */
  private async offer(source: PolicySource, basis: Basis): Promise<AcceptedOffer | "superseded" | null> {
    const bundle = await load(source).finally(() => this.reportUnloaded(source));
    if (bundle === null) return null;
    const activation = await this.activateBundle(source.name, bundle, null, basis).catch((error: unknown) => {
      // A plugin can return any value.
      throw withSource(error, source.name, (bundle as Partial<PolicyBundle> | undefined)?.source);
    });
    return activation === null ? "superseded" : { ...activation, bundle };
  }

  private reportActivation(source: PolicySource, { bundle, digest, previous, displaced }: AcceptedOffer): void {
    const { log, channels } = this.options;
    log.info("policies are active", { source: source.name, policies: bundle.policies.length, policy_set: digest });
    if (displaced.length > 0)
      log.warn(
        "the baseline replaced policies of others that have its names, or that were suggested in place of its rules",
        {
          source: source.name,
          policies: displaced.join(", "),
        },
      );
    source.settled?.({ source: bundle.source, faults: [], previous, policy_set: digest, isNew: previous !== digest });
    const unknown = findUnknownChannels(
      bundle.policies.map(({ document }) => document),
      channels,
    );
    // Do not warn if no channel is configured, because approvers then do not expect notifications. "assent doctor"
    // reports it.
    if (unknown.length > 0 && channels.length > 0)
      log.warn("policies name channels that are not configured, so no one is notified", {
        source: source.name,
        channels: [...new Set(unknown.map(({ channel }) => channel))].join(", "),
      });
  }

  /** Logs files that look like policies and are not loaded, once for each list. */
  private reportUnloaded(source: PolicySource): void {
    const { name } = source;
    const files = source.unloaded?.() ?? [];
    const before = this.unloaded.get(name) ?? [];
    this.unloaded.set(name, files);
    if (files.length === 0 || isDeepStrictEqual(before, files)) return;
    // Subfolders are an option. Another name is probably a mistake.
    const level = files.every(({ reason }) => reason === "subfolder") ? "info" : "warn";
    this.options.log[level]("files look like policies and are not loaded", {
      source: name,
      files: files.map((each) => `${each.file} ${explainUnloaded(each)}`),
    });
  }

  /** Logs and records the faults of a source. Throws any other error. */
  private async reportTrouble(source: PolicySource, error: unknown, basis: Basis): Promise<void> {
    const { clock, log, ledger } = this.options;
    if (!(error instanceof PolicySourceError)) throw error;
    const { name } = source;
    const faults =
      error.faults.length > 0 ? error.faults : [{ file: name, line: null, column: null, message: error.message }];
    const before = this.trouble.get(name);
    const isUnread = Object.keys(error.source).length === 0;
    const unreadSince = isUnread ? (before?.unreadSince ?? clock()) : null;
    this.trouble.set(name, { since: before?.since ?? clock(), faults, source: error.source, unreadSince });
    const problem = isUnread ? "policies could not be read" : "policies were rejected";
    const effect = basis.value === null ? "no policy of this source is active" : "the last valid set stays active";
    log.error(`${problem}: ${error.message}; ${effect}`, {
      source: name,
      faults: faults.map(formatFault),
    });
    // Record each rejection once, however often the source is checked.
    if (isDeepStrictEqual([before?.faults, before?.source], [faults, error.source])) return;
    const { isNew, digest } = await ledger.transact(async (tx) => ({
      isNew: await recordRefusal(tx, name, error.source, faults.map(formatFault), basis),
      digest: tx.activePolicies.digest,
    }));
    source.settled?.({ source: error.source, faults, previous: digest, policy_set: digest, isNew });
  }

  private async readSourceState(name: string): Promise<PolicySourceState> {
    const { storage } = this.options;
    const [refused, basis] = await Promise.all([readRefusedSource(storage, name), readAcceptedBundle(storage, name)]);
    const location = this.baselines.get(name);
    const stored = basis === null ? null : (JSON.parse(basis) as AcceptedBundle);
    // During a rolling change of the location, some processes still load the old location. So report a bundle from a
    // different location as applied, too, unless this process could not load its own location.
    const isApplied =
      location === undefined ||
      isAcceptedBaseline(stored, location) ||
      (stored?.baseline !== undefined && !this.trouble.has(name));
    const accepted = isApplied ? stored : null;
    return {
      name,
      baseline: location !== undefined,
      source: refused ?? accepted?.source ?? {},
      accepted: refused === null && accepted !== null,
      applied: accepted === null ? null : { source: accepted.source, policy_set: accepted.digest },
      unread_since: this.trouble.get(name)?.unreadSince ?? null,
    };
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

/** Returns the faults of a bundle as an error with its source. Returns any other error unchanged. */
function withSource(error: unknown, name: string, source: Record<string, string> = {}): unknown {
  if (error instanceof PolicySourceError)
    return new PolicySourceError(error.message, error.faults, { ...source, ...error.source });
  if (!(error instanceof PolicyCompileError)) return error;
  const faults = error.faults.map((fault) => ({
    file: name,
    line: null,
    column: null,
    message: explainCompileFault(fault),
  }));
  return new PolicySourceError(error.message, faults, source);
}

/** Returns the position of the fault, such as `refunds.yaml:3:5`. */
export function locateFault({ file, line, column }: PolicyFault): string {
  return [file, line, column].filter((part) => part !== null).join(":");
}

export function formatFault(fault: PolicyFault): string {
  return `${locateFault(fault)}: ${fault.message}`;
}
