/**
 * Reads and compiles policy sets, and caches the compiled sets. Sets and versions are immutable and never deleted, so
 * that any decision can be replayed.
 */
import type { ActivePolicies } from "../contract/active-policies.ts";
import { PreparationRequired } from "../contract/ledger.ts";
import { nullIfCorrupt, StorageError, type LedgerHead, type StorageReader } from "../contract/storage.ts";
import { sha256Hex, utf8 } from "../domain/hash.ts";
import {
  type CompiledPolicySet,
  compilePolicySet,
  emptyPolicySet,
  isPrecompiled,
  precompilePolicySet,
} from "../domain/policy/compile/compile.ts";
import type { PolicySetDocument } from "../domain/policy/policy-types.ts";
import { findSetSource } from "./activate.ts";

/** Maximum number of cached compiled sets, including the active set. Replays of old decisions use the other sets. */
const MAX_CACHED_SETS = 16;

export class PolicySets {
  private readonly storage: StorageReader;
  private readonly head: () => Promise<LedgerHead>;
  private readonly compiled = new Map<string, ActivePolicies>();
  private readonly empty: ActivePolicies = { digest: null, compiled: emptyPolicySet(), source: null };
  private active = this.empty;

  constructor(storage: StorageReader, head: () => Promise<LedgerHead>) {
    this.storage = storage;
    this.head = head;
  }

  /**
   * Returns the active set under the lock, for the sequencer. Rejects with PreparationRequired if the set is not
   * compiled yet.
   */
  within(tx: StorageReader, digest: string | null): Promise<ActivePolicies> {
    return this.activate(tx, digest, true);
  }

  /** Returns the active set at the committed head. */
  async current(): Promise<ActivePolicies> {
    return this.activate(this.storage, (await this.head()).policy_set, false);
  }

  /** Returns the active set that this process read last, without a read of the store. */
  latest(): ActivePolicies {
    return this.active;
  }

  /** Returns any set that was ever active: the empty set for the digest null, and null for an unknown digest. */
  byDigest(digest: string | null): Promise<ActivePolicies | null> {
    return this.find(this.storage, digest, false);
  }

  /** Returns the compiled form of any set that was ever active, within a transaction; null if it cannot be read. */
  async past(tx: StorageReader, digest: string | null): Promise<CompiledPolicySet | null> {
    return (await nullIfCorrupt(this.find(tx, digest, false)))?.compiled ?? null;
  }

  private async activate(reader: StorageReader, digest: string | null, locked: boolean): Promise<ActivePolicies> {
    if (digest === this.active.digest) return this.active;
    const next = await this.find(reader, digest, locked);
    if (next === null) throw new StorageError("corrupt", `the active policy set ${digest ?? ""} is not in the store`);
    // Read the source at each activation, because a set can become active again from a different commit.
    const source = digest === null ? null : await findSetSource(reader, digest);
    this.active = { ...next, source };
    return this.active;
  }

  private async find(reader: StorageReader, digest: string | null, locked: boolean): Promise<ActivePolicies | null> {
    if (digest === null) return this.empty;
    const cachedSet = this.compiled.get(digest);
    if (cachedSet !== undefined) return cachedSet;
    const row = await reader.policySet(digest);
    if (row === null) return null;
    if (sha256Hex(utf8(row.document)) !== digest)
      throw new StorageError("corrupt", `the stored policy set ${digest} does not hash to its digest`);
    const document = JSON.parse(row.document) as PolicySetDocument;
    if (locked && !isPrecompiled(document))
      throw new PreparationRequired("a policy set", () => precompilePolicySet(document));
    const set: ActivePolicies = { digest, compiled: compilePolicySet(document), source: null };
    this.compiled.set(digest, set);
    this.evictOldest(digest);
    return set;
  }

  private evictOldest(newest: string): void {
    for (const oldest of this.compiled.keys()) {
      if (this.compiled.size <= MAX_CACHED_SETS) break;
      if (oldest !== this.active.digest && oldest !== newest) this.compiled.delete(oldest);
    }
  }
}
