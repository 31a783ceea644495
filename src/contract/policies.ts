/** The policies as plugins see them: the active set, what changes it, and what others would have decided. */
import type { CompiledPolicySet } from "../domain/policy/compile/compile.ts";
import type { PolicyChange } from "../domain/entries.ts";
import type { PolicyDocument, PolicySetDocument } from "../domain/policy/types.ts";
import type { BacktestRange, BacktestReport } from "./backtest.ts";
import type { Credential, LedgerTransaction } from "./host.ts";
import type { PolicyBundle, PolicyState } from "./policy-source.ts";
import type { PolicyTrials } from "./trials.ts";

export interface ActivePolicies {
  /** Null before the first activation. */
  readonly digest: string | null;
  readonly compiled: CompiledPolicySet;
  /** What made it active last, as in its ledger entry: `{kind: "git", commit, …}`, for instance. Null where that is not known. */
  readonly source: Readonly<Record<string, string>> | null;
}

export interface Policies {
  /** Names of the configured policy sources. What another one brought, which is no longer configured, is nobody's. */
  readonly sources: readonly string[];
  /** The active set as of now. */
  current(): Promise<ActivePolicies>;
  /** Any set ever active, by digest; null when it never was. */
  byDigest(digest: string | null): Promise<ActivePolicies | null>;
  /**
   * Stores new versions where content changed, and activates the whole. Resolves to the digest; to null, with nothing
   * changed, when another offer of this source was taken after `basis` was read.
   */
  activate(
    sourceName: string,
    bundle: PolicyBundle,
    by: Credential | null,
    basis?: { value: string | null },
  ): Promise<string | null>;
  /** The set that these changes would make active: a version, or null to take the policy out, by name. Reads only. Throws POLICY_INVALID. */
  plan(tx: LedgerTransaction, edits: ReadonlyMap<string, PolicyEdit | null>): PlannedPolicySet;
  /**
   * Stores a planned set, records it with what became of policies, and makes it active with the batch. When it is the
   * active one, it is recorded only if policies changed all the same.
   */
  commit(
    tx: LedgerTransaction,
    planned: PlannedPolicySet,
    source: Record<string, string>,
    by: Credential | null,
    changes: readonly PolicyChange[],
  ): Promise<void>;
  /** Of the committed head, whichever process moved it. */
  state(): Promise<PolicyState>;
  /** What callers send, read and tried out away from what decides. */
  readonly trials: PolicyTrials;
  /** What a policy in shadow mode said at the time, had it been enforced. Decisions that it had no say in are left out. */
  shadowReport(policy: string, range: BacktestRange): Promise<BacktestReport>;
}

export interface PolicyEdit {
  version: number;
  definition: PolicyDocument;
}

export interface PlannedPolicySet {
  /** Null where no policy was ever active and none is planned. */
  digest: string | null;
  document: PolicySetDocument;
  /** The document's canonical JSON. */
  text: string;
}
