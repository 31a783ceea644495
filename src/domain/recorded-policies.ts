/** Policies and their versions, as the ledger records them. */
import type { ChangedPolicy } from "./change-entries.ts";
import type { PolicySetEntry, RecordedPolicyChange } from "./entries.ts";
import type { Fold } from "./fold.ts";
import { PersistentMap } from "./persistent-map.ts";

/** A policy after the newest entry about it. */
interface RecordedPolicy extends RecordedPolicyChange {
  /** Digests of the definitions, keyed by version. */
  readonly digests: PersistentMap<number, string>;
}

export const recordedPolicyState: Fold<PersistentMap<string, RecordedPolicy>> = {
  name: "recorded_policies",
  initial: PersistentMap.of(),
  on: {
    policy_set(policies, { changes }: PolicySetEntry) {
      let after = policies;
      for (const change of changes) {
        const digests = after.get(change.id)?.digests ?? PersistentMap.of();
        after = after.with(change.id, {
          ...change,
          digests: change.digest === null ? digests : digests.with(change.version, change.digest),
        });
      }
      return after;
    },
  },
};

/** Returns the names of the policies that differ from the ledger, or are missing in the store. */
export function findAlteredPolicies(
  rows: readonly ChangedPolicy[],
  recorded: PersistentMap<string, RecordedPolicy>,
): string[] {
  const altered = rows.filter((row) => {
    const policy = recorded.get(row.id);
    return (
      policy === undefined ||
      row.name !== policy.name ||
      row.managed_by !== policy.managed_by ||
      row.latest_version !== policy.version ||
      row.active_version !== policy.active ||
      (row.deleted_at !== null) !== policy.deleted
    );
  });
  const ids = new Set(rows.map(({ id }) => id));
  const missing = [...recorded.values()].filter(({ id }) => !ids.has(id));
  return [...altered, ...missing].map(({ name }) => name);
}

/** Returns the digest of a stored version of a policy with this name; null if no entry stored that version. */
export function findRecordedDigest(
  recorded: PersistentMap<string, RecordedPolicy>,
  name: string,
  version: number,
): string | null {
  return [...recorded.values()].find((policy) => policy.name === name)?.digests.get(version) ?? null;
}
