/** Policies and their versions, as the ledger records them. */
import { canonicalText } from "./canonical.ts";
import { findDifferingColumns } from "./differing-columns.ts";
import type { PolicySetEntry, RecordedPolicyChange } from "./entries.ts";
import type { Fold } from "./fold.ts";
import { sha256Hex, utf8 } from "./hash.ts";
import { PersistentMap } from "./persistent-map.ts";
import { parseEntryTime } from "./time.ts";

/** A policy of the API or of a policy source, without its definition. Entries determine all columns of its row. */
export interface PolicyColumns {
  id: string;
  name: string;
  /** Name of the policy source that manages the policy; null if the API manages it. */
  managed_by: string | null;
  latest_version: number;
  active_version: number | null;
  /** Time of the deletion. A deleted policy keeps its name and versions, because recorded decisions refer to them. */
  deleted_at: number | null;
  created_at: number;
  updated_at: number;
}

/** The columns of a version's row that its entry determines. The entry commits to the definition. */
export interface PolicyVersionColumns {
  /** SHA-256 of the definition, hex. */
  digest: string;
  created_by: string | null;
  created_at: number;
}

/** The text of a version, to which its entry commits. */
export interface PolicyText {
  /** Canonical JSON of a PolicyDocument. */
  definition: string;
  /**
   * The source that the author wrote, with its comments; null if the policy was sent as JSON, with other policies, or by
   * a policy source.
   */
  yaml: string | null;
}

/** A policy after the newest entry about it. */
export interface RecordedPolicy {
  readonly row: PolicyColumns;
  /** The versions, keyed by number. */
  readonly versions: PersistentMap<number, PolicyVersionColumns>;
}

type RecordedPolicies = PersistentMap<string, RecordedPolicy>;

/** The policies, keyed by id. */
export const recordedPolicyState: Fold<RecordedPolicies> = {
  name: "recorded_policies",
  initial: PersistentMap.of(),
  on: {
    policy_set: (policies, { changes, at, by }: PolicySetEntry) =>
      changes.reduce(
        (after, change) => after.with(change.id, changePolicy(after.get(change.id), change, at, by?.key_id ?? null)),
        policies,
      ),
  },
};

function changePolicy(
  earlier: RecordedPolicy | undefined,
  { id, name, managed_by, version, digest, active, deleted }: RecordedPolicyChange,
  at: string,
  created_by: string | null,
): RecordedPolicy {
  if (earlier === undefined && (version !== 1 || digest === null))
    throw new RangeError(`it changes the policy ${name}, which no entry stored`);
  const time = parseEntryTime(at);
  const versions = earlier?.versions ?? PersistentMap.of();
  return {
    row: {
      id,
      name,
      managed_by,
      latest_version: version,
      active_version: active,
      deleted_at: deleted ? time : null,
      created_at: earlier?.row.created_at ?? time,
      updated_at: time,
    },
    versions: digest === null ? versions : versions.with(version, { digest, created_by, created_at: time }),
  };
}

/** The members of a policy that the entry of a change contains. */
export type ChangedPolicy = Omit<PolicyColumns, "created_at" | "updated_at">;

/** Returns a policy before its first version. */
export function newPolicy(id: string, name: string): ChangedPolicy {
  return { id, name, managed_by: null, latest_version: 0, active_version: null, deleted_at: null };
}

/**
 * Returns a policy change in the form of ledger entries.
 * @param policy the policy after the change
 * @param text the text of the newest version if the change creates that version; else null
 */
export function toPolicyChange(policy: ChangedPolicy, text: PolicyText | null): RecordedPolicyChange {
  const { id, name, managed_by, latest_version, active_version, deleted_at } = policy;
  return {
    id,
    name,
    managed_by,
    version: latest_version,
    digest: text === null ? null : sha256Hex(utf8(text.definition)),
    active: active_version,
    deleted: deleted_at !== null,
  };
}

/** Returns the name in `meta` of the origin of a policy set's last activation. */
export const policySetSourceMeta = (digest: string): string => `policy_set_source:${digest}`;

/** Returns the policy set that the entry activates, and its origin as canonical JSON; null if the active set stays. */
export function findActivatedSet({
  previous,
  policy_set: digest,
  at,
  source,
}: PolicySetEntry): { digest: string; created_at: number; source: string } | null {
  if (digest === null || digest === previous) return null;
  return { digest, created_at: parseEntryTime(at), source: canonicalText(source) };
}

/**
 * Returns the names of the policies that differ from the ledger, or are missing in the store. Ignores the times of the
 * first and the latest change: a change takes them from the ledger instead of the row.
 */
export function findAlteredPolicies(rows: readonly PolicyColumns[], recorded: RecordedPolicies): string[] {
  const altered = rows.filter((row) => {
    const policy = recorded.get(row.id);
    if (policy === undefined) return true;
    const { created_at: _, updated_at: __, ...columns } = policy.row;
    return findDifferingColumns(columns, row).length > 0;
  });
  const ids = new Set(rows.map(({ id }) => id));
  const missing = [...recorded.values()].flatMap(({ row }) => (ids.has(row.id) ? [] : row));
  return [...altered, ...missing].map(({ name }) => name);
}

/** Returns the digest of a stored version of a policy with this name; null if no entry stored that version. */
export function findRecordedDigest(recorded: RecordedPolicies, name: string, version: number): string | null {
  return [...recorded.values()].find(({ row }) => row.name === name)?.versions.get(version)?.digest ?? null;
}
