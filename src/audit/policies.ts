/** Compares policies, their versions and policy sets with the entries that created, changed and activated them. */
import type { StatesReader } from "../contract/states.ts";
import type { EntryRow, PolicyRow } from "../contract/storage.ts";
import { parseEntryTime } from "../domain/time.ts";
import { canonicalText } from "../domain/canonical.ts";
import type { PolicySetEntry } from "../domain/entries.ts";
import { sha256Hex, utf8 } from "../domain/hash.ts";
import type { JsonValue } from "../domain/json.ts";
import { compilePolicySet, emptyPolicySet, type CompiledPolicySet } from "../domain/policy/compile/compile.ts";
import { parsePolicies } from "../domain/policy/parse/parse.ts";
import type { PolicySetDocument } from "../domain/policy/policy-types.ts";
import { findActivatedSet, type RecordedPolicy, recordedPolicyState } from "../domain/recorded-policies.ts";
import {
  prefixFaults,
  reportDifferences,
  reportUnreadableData,
  type AuditedStore,
  type EntryBody,
  type ReportFault,
} from "./report.ts";

/** Number of cached compiled sets. */
const MAX_CACHED_SETS = 16;

interface KnownSet {
  created_at: number;
  /** Canonical JSON of the set; null if an entry contains only the digest of the set. */
  source: string | null;
}

export class PoliciesAuditor {
  private readonly store: AuditedStore;
  readonly sets = new Map<string, KnownSet>();
  private readonly storedBy = new Set<string>();
  private readonly compiledSets = new Map<string, Promise<CompiledPolicySet | null>>();

  constructor(store: AuditedStore) {
    this.store = store;
  }

  fold({ type }: Pick<EntryRow, "seq" | "type">, body: EntryBody): void {
    if (type !== "policy_set" && type !== "decision") return;
    const { policy_set: digest, at } = body as unknown as Pick<PolicySetEntry, "policy_set" | "at">;
    if (digest !== null && !this.sets.has(digest))
      this.sets.set(digest, { created_at: parseEntryTime(at), source: null });
    if (type === "decision") return;
    const entry = body as unknown as PolicySetEntry;
    const activated = findActivatedSet(entry);
    if (activated !== null) Object.assign(this.sets.get(activated.digest) as KnownSet, { source: activated.source });
    for (const { id } of entry.changes)
      if (entry.by !== null) this.storedBy.add(JSON.stringify([id, entry.by.key_id, parseEntryTime(at)]));
  }

  /** @param states the states after the newest entry */
  async check(
    { state }: Pick<StatesReader, "state">,
    reportFault: ReportFault,
    progress: (done: number, total: number) => void,
  ): Promise<void> {
    const members = await this.checkSets(reportFault, progress);
    const { policy_set } = await this.store.head();
    const document = policy_set === null ? null : await this.documentOf(policy_set);
    if (policy_set !== null && document === null) return;
    const active = new Map((document?.policies ?? []).map(({ policy, version }) => [policy, version]));
    const recorded = state(recordedPolicyState);
    const rows = await this.store.policies();
    for (const row of rows) {
      const subject = `the policy ${row.name}`;
      await reportUnreadableData(subject, reportFault, () =>
        this.checkPolicy(row, recorded.get(row.id), members, prefixFaults(subject, reportFault)),
      );
    }
    const ids = new Set(rows.map(({ id }) => id));
    for (const [id, { row }] of recorded) {
      const report = prefixFaults(`the policy ${row.name}`, reportFault);
      if (!ids.has(id)) report("it is in the ledger but not in the store");
      const version = active.get(row.name) ?? null;
      if (row.active_version !== version)
        report(
          `its version ${version} is in the active set, and ${row.active_version} in the entries about the policy`,
        );
      active.delete(row.name);
    }
    for (const name of active.keys()) reportFault(`the policy ${name} is active but not in the ledger`);
  }

  /** Returns null if the stored set is missing or altered. */
  compiled(digest: string | null): Promise<CompiledPolicySet | null> {
    if (digest === null) return Promise.resolve(emptyPolicySet());
    let set = this.compiledSets.get(digest);
    if (set === undefined) {
      set = this.documentOf(digest).then((document) => (document === null ? null : compilePolicySet(document)));
      this.compiledSets.set(digest, set);
      for (const oldest of this.compiledSets.keys())
        if (this.compiledSets.size > MAX_CACHED_SETS) this.compiledSets.delete(oldest);
    }
    return set;
  }

  /** Returns true if this key stored the policy at this time. */
  wasStoredBy(id: string, keyId: string, at: number): boolean {
    return this.storedBy.has(JSON.stringify([id, keyId, at]));
  }

  private async documentOf(digest: string): Promise<PolicySetDocument | null> {
    const row = await this.store.policySet(digest);
    return row === null || sha256Hex(utf8(row.document)) !== digest
      ? null
      : (JSON.parse(row.document) as PolicySetDocument);
  }

  /** Checks all policy sets. Resolves to the digests of the sets' policies, keyed by name and version. */
  private async checkSets(
    reportFault: ReportFault,
    progress: (done: number, total: number) => void,
  ): Promise<Map<string, string>> {
    const members = new Map<string, string>();
    let done = 0;
    for (const [digest, set] of this.sets) {
      await reportUnreadableData(`the policy set ${digest}`, reportFault, async () => {
        const row = await this.store.policySet(digest);
        if (row === null) return reportFault(`the policy set ${digest} made decisions but is not in the store`);
        if (sha256Hex(utf8(row.document)) !== digest)
          return reportFault(`the policy set ${digest} was altered: its document has a different digest`);
        reportDifferences({ created_at: set.created_at }, row, prefixFaults(`the policy set ${digest}`, reportFault));
        const { policies: listed } = JSON.parse(row.document) as PolicySetDocument;
        for (const { policy, version, definition } of listed) {
          const name = memberKey(policy, version);
          if (!members.has(name)) members.set(name, sha256Hex(utf8(canonicalText(definition as unknown as JsonValue))));
        }
      });
      progress(++done, this.sets.size);
    }
    const count = await this.store.copying?.count("policy_sets");
    if (count !== undefined && count > this.sets.size)
      reportFault(`the store has ${count} policy sets, but the ledger has ${this.sets.size}`);
    return members;
  }

  private async checkPolicy(
    row: PolicyRow,
    recorded: RecordedPolicy | undefined,
    members: ReadonlyMap<string, string>,
    reportFault: ReportFault,
  ): Promise<void> {
    if (recorded === undefined) return reportFault("it is in the store but not in the ledger");
    reportDifferences(recorded.row, row, reportFault);
    const versions = await this.store.policyVersions(row.id);
    if (versions.length !== row.latest_version)
      reportFault(`it has ${versions.length} versions, but its latest version is ${row.latest_version}`);
    for (const version of versions) {
      const report = prefixFaults(`version ${version.version}`, reportFault);
      const entry = recorded.versions.get(version.version);
      if (entry === undefined) report("it is in the store but not in the ledger");
      else reportDifferences(entry, version, report);
      const member = members.get(memberKey(row.name, version.version));
      if (member !== undefined && member !== version.digest) report("a policy set has a different definition of it");
      if (sha256Hex(utf8(version.definition)) !== version.digest) report("its definition has a different digest");
      if (version.yaml !== null && digestOfYaml(version.yaml) !== version.digest)
        report("its YAML states a different policy");
    }
    for (const version of recorded.versions.keys())
      if (!versions.some((stored) => stored.version === version))
        reportFault(`its version ${version} is not in the store`);
  }
}

/** Returns the digest of the only policy in the YAML; null if the YAML has a fault. */
function digestOfYaml(yaml: string): string | null {
  const { documents, faults } = parsePolicies(yaml, "policy_versions.yaml");
  return faults.length > 0 || documents.length !== 1
    ? null
    : sha256Hex(utf8(canonicalText(documents[0] as unknown as JsonValue)));
}

function memberKey(policy: string, version: number): string {
  return `${version} ${policy}`;
}
