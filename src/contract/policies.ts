/** Policies for plugins: read, change and test the active policy set. */
import type { PolicyDocument, PolicySetDocument } from "../domain/policy/policy-types.ts";
import type { ChangedPolicy, PolicyText } from "../domain/recorded-policies.ts";
import type { ActivePolicies } from "./active-policies.ts";
import type { Credential } from "./host.ts";
import type { LedgerTransaction } from "./ledger.ts";
import type { PolicyBundle, PolicyState, SourceLocation } from "./policy-source.ts";
import type { PolicyTrials } from "./trials.ts";

export interface Policies {
  /**
   * Names of the configured policy sources. A policy whose source is no longer configured is not managed by a source.
   */
  readonly sources: readonly string[];
  /** Locations of the baseline's sources, keyed by the names of the sources. */
  readonly baselines: ReadonlyMap<string, SourceLocation>;
  /** Returns the active policy set. */
  current(): Promise<ActivePolicies>;
  /**
   * Returns the active policy set that this process read last, without a read of the store. Another process may have
   * activated a newer set, so use the result only to prepare work.
   */
  latest(): ActivePolicies;
  /** Returns any policy set that was ever active: the empty set for the digest null, and null for an unknown digest. */
  byDigest(digest: string | null): Promise<ActivePolicies | null>;
  /**
   * Stores new versions of changed policies and activates the complete bundle. Resolves to the digest. Resolves to null
   * and changes nothing if another bundle of this source was accepted after `basis` was read.
   */
  activate(
    sourceName: string,
    bundle: PolicyBundle,
    by: Credential | null,
    basis?: { value: string | null },
  ): Promise<string | null>;
  /**
   * Computes the set that these edits would activate. Keys are policy names; null removes the policy. Writes nothing.
   * Rejects with POLICY_INVALID, with POLICY_MANAGED if a configured baseline has not been loaded yet, and with
   * PreparationRequired if the set must be compiled first.
   */
  plan(tx: LedgerTransaction, edits: ReadonlyMap<string, PolicyActivation | null>): Promise<PlannedPolicySet>;
  /**
   * Stores a planned set, records it with the policy changes, and activates it when the batch commits. If the set is
   * already active, it is recorded only if `changes` is not empty.
   */
  commit(
    tx: LedgerTransaction,
    planned: PlannedPolicySet,
    source: Record<string, string>,
    by: Credential | null,
    changes: readonly PolicyUpdate[],
  ): Promise<void>;
  /** Returns the state at the committed head, which includes commits of other processes. */
  state(): Promise<PolicyState>;
  /** Compiles and tests callers' policies on a separate thread. */
  readonly trials: PolicyTrials;
}

/** Version of a policy that becomes active. */
export interface PolicyActivation {
  version: number;
  definition: PolicyDocument;
}

/** A policy after a change. */
export interface PolicyUpdate {
  policy: ChangedPolicy;
  /** The text of the newest version if the change creates that version; else null. */
  text: PolicyText | null;
}

export interface PlannedPolicySet {
  /** Digest of the set; null if no policy was ever active and no activation is planned. */
  digest: string | null;
  document: PolicySetDocument;
  /** The document's canonical JSON; empty if there is no set or no edit. */
  text: string;
}
