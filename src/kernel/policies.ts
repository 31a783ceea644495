/**
 * The active policy set: compiled once by digest, switched by a ledger entry. Sets and versions
 * are immutable and kept for ever, so that any decision can be made again.
 */
import type { ActivePolicies, Credential, LedgerTransaction, Policies, PolicyState } from "../contract/host.ts";
import { PolicySourceError, type PolicyBundle, type PolicyFault, type PolicySource } from "../contract/policy-source.ts";
import { StorageError, type LedgerHead, type PolicyRow, type StorageReader } from "../contract/storage.ts";
import type { Ledger, Logger } from "../contract/host.ts";
import { actorOf } from "../domain/actor.ts";
import { canonicalText } from "../domain/canonical.ts";
import { sha256Hex, utf8 } from "../domain/hash.ts";
import type { JsonValue } from "../domain/json.ts";
import { buildPolicySet, compilePolicySet, emptyPolicySet, PolicyCompileError } from "../domain/policy/compile.ts";
import type { PolicyDocument, PolicySetDocument, PolicySetMember } from "../domain/policy/types.ts";
import { toRfc3339 } from "../domain/time.ts";

/** Compiled sets kept besides the active one: replay of old decisions uses them. */
const KEPT_SETS = 16;
const LISTED_POLICIES = 200;

export interface PoliciesOptions {
  storage: StorageReader;
  ledger(): Ledger;
  head(): Promise<LedgerHead>;
  newId(): string;
  clock(): number;
  log: Logger;
}

export interface PolicyService extends Policies {
  /** The set under the lock, for the sequencer. */
  within(tx: StorageReader, digest: string | null): Promise<ActivePolicies>;
  /** Loads a source and activates it; a faulty one keeps the last good set and is told in `state`. */
  sync(source: PolicySource): Promise<void>;
}

export function createPolicies(options: PoliciesOptions): PolicyService {
  const compiled = new Map<string, ActivePolicies>();
  const empty: ActivePolicies = { digest: null, compiled: emptyPolicySet() };
  const trouble = new Map<string, { since: number; faults: PolicyFault[] }>();
  let active: ActivePolicies = empty;

  async function find(reader: StorageReader, digest: string | null): Promise<ActivePolicies | null> {
    if (digest === null) return empty;
    const known = compiled.get(digest);
    if (known !== undefined) return known;
    const row = await reader.policySet(digest);
    if (row === null) return null;
    if (sha256Hex(utf8(row.document)) !== digest) throw new StorageError("corrupt", `the stored policy set ${digest} does not hash to its digest`);
    const made: ActivePolicies = { digest, compiled: compilePolicySet(JSON.parse(row.document) as PolicySetDocument) };
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
    active = found;
    return found;
  }

  return {
    within,
    current: async () => within(options.storage, (await options.head()).policy_set),
    byDigest: (digest) => find(options.storage, digest),
    activate: (sourceName, bundle, by) =>
      options.ledger().submit((tx) => activateBundle(tx, options, sourceName, bundle, by)),
    state(): PolicyState {
      const faults = [...trouble.values()];
      return {
        digest: active.digest,
        count: active.compiled.document.policies.length,
        faults: faults.flatMap((t) => t.faults),
        stale_since: faults.length === 0 ? null : Math.min(...faults.map((t) => t.since)),
      };
    },
    async sync(source) {
      try {
        const bundle = await source.load();
        const digest = await this.activate(source.name, bundle, null);
        await this.current();
        trouble.delete(source.name);
        options.log.info("policies are active", { source: source.name, policies: bundle.policies.length, policy_set: digest });
      } catch (error) {
        const faults = faultsOf(source.name, error);
        if (faults === null) throw error;
        trouble.set(source.name, { since: trouble.get(source.name)?.since ?? options.clock(), faults });
        options.log.error(`policies were not taken: ${(error as Error).message}; the last good set stays`, {
          source: source.name,
          faults: faults.map(formatFault),
        });
      }
    },
  };
}

/** What is wrong with what a source offered; null when the error is of another kind. */
function faultsOf(source: string, error: unknown): PolicyFault[] | null {
  if (error instanceof PolicySourceError) return error.faults;
  if (!(error instanceof PolicyCompileError)) return null;
  return error.faults.map(({ policy, rule, message }) => ({ file: source, line: null, column: null, message: `policy "${policy}"${rule === null ? "" : `, rule "${rule}"`} ${message}` }));
}

export function formatFault(fault: PolicyFault): string {
  const at = [fault.file, fault.line, fault.column].filter((part) => part !== null).join(":");
  return `${at}: ${fault.message}`;
}

/** One transaction: new versions where a definition changed, the set, its entry, the head's digest. Answers the digest. */
async function activateBundle(
  tx: LedgerTransaction,
  options: PoliciesOptions,
  sourceName: string,
  bundle: PolicyBundle,
  by: Credential | null,
): Promise<string> {
  const confirmed = by === null ? null : await tx.confirm(by);
  const stored = new Map((await tx.policies()).map((row) => [row.name, row]));
  const clashes = bundle.policies.filter(({ document }) => {
    const row = stored.get(document.policy);
    return row !== undefined && row.managed_by !== sourceName && row.active_version !== null;
  });
  if (clashes.length > 0) {
    throw new PolicySourceError(`${clashes.length} of its names belong to another source`, clashes.map(({ document, origin }) => ({
      file: origin, line: null, column: null,
      message: `policy "${document.policy}" is active and managed by ${stored.get(document.policy)?.managed_by ?? "the API"}; rename one of the two`,
    })));
  }
  const plan = await planVersions(tx, options.newId, sourceName, bundle, stored);
  const members: PolicySetMember[] = plan.map(({ row, document }) => ({ policy: row.name, version: row.latest_version, definition: document }));
  for (const row of stored.values()) {
    if (row.managed_by === sourceName || row.active_version === null) continue;
    const version = await tx.policyVersion(row.id, row.active_version);
    if (version !== null) members.push({ policy: row.name, version: version.version, definition: JSON.parse(version.definition) as PolicyDocument });
  }
  const document = buildPolicySet(members);
  compilePolicySet(document);
  const text = canonicalText(document as unknown as JsonValue);
  const digest = sha256Hex(utf8(text));
  if (digest === tx.activePolicies.digest) return digest;

  for (const { row, isNew, changed, document: definition, digest: definitionDigest } of plan) {
    const now = tx.now;
    if (isNew) await tx.insertPolicy({ ...row, active_version: row.latest_version, created_at: now, updated_at: now });
    else await tx.updatePolicy(row.id, { managed_by: sourceName, latest_version: row.latest_version, active_version: row.latest_version, updated_at: now });
    if (changed) {
      await tx.insertPolicyVersion({
        policy_id: row.id, version: row.latest_version, definition: canonicalText(definition as unknown as JsonValue),
        digest: definitionDigest, created_by: confirmed?.key.id ?? null, created_at: now,
      });
    }
  }
  const kept = new Set(plan.map(({ row }) => row.name));
  for (const row of stored.values()) {
    if (row.managed_by === sourceName && row.active_version !== null && !kept.has(row.name)) {
      await tx.updatePolicy(row.id, { active_version: null, updated_at: tx.now });
    }
  }
  await tx.putPolicySet({ digest, document: text, created_at: tx.now });
  tx.record({
    type: "policy_set", v: 1, at: toRfc3339(tx.now), previous: tx.activePolicies.digest, policy_set: digest,
    policy_count: document.policies.length,
    policies: document.policies.length > LISTED_POLICIES ? null : document.policies.map(({ policy, version }) => ({ policy, version })),
    source: bundle.source, by: confirmed === null ? null : actorOf(confirmed.key, confirmed.principal),
  });
  await tx.activatePolicySet(digest);
  return digest;
}

interface PlannedVersion {
  row: PolicyRow;
  document: PolicyDocument;
  digest: string;
  isNew: boolean;
  changed: boolean;
}

/** What each policy of the bundle becomes: the version it has, or the next one. */
async function planVersions(
  tx: LedgerTransaction,
  newId: () => string,
  sourceName: string,
  bundle: PolicyBundle,
  stored: ReadonlyMap<string, PolicyRow>,
): Promise<PlannedVersion[]> {
  const plan: PlannedVersion[] = [];
  for (const { document } of bundle.policies) {
    const digest = sha256Hex(utf8(canonicalText(document as unknown as JsonValue)));
    const row = stored.get(document.policy);
    if (row === undefined) {
      plan.push({
        document, digest, isNew: true, changed: true,
        row: { id: newId(), name: document.policy, managed_by: sourceName, latest_version: 1, active_version: null, deleted_at: null, created_at: 0, updated_at: 0 },
      });
      continue;
    }
    const latest = await tx.policyVersion(row.id, row.latest_version);
    const changed = latest?.digest !== digest;
    plan.push({ document, digest, isNew: false, changed, row: { ...row, latest_version: row.latest_version + (changed ? 1 : 0) } });
  }
  return plan;
}
