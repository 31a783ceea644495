/** Builds the entries that record changes of keys and policies. */
import type { Actor, ApiKeyEntry, RecordedPolicyChange } from "./entries.ts";
import { toRfc3339 } from "./time.ts";

/** The members of a policy's row that entries record. */
export interface ChangedPolicy {
  id: string;
  name: string;
  managed_by: string | null;
  latest_version: number;
  active_version: number | null;
  deleted_at: number | null;
}

/**
 * Returns a policy change in the form of ledger entries.
 * @param policy the policy after the change
 * @param digest the digest of the newest version's definition if the change created that version; else null
 */
export function toPolicyChange(policy: ChangedPolicy, digest: string | null): RecordedPolicyChange {
  const { id, name, managed_by, latest_version, active_version, deleted_at } = policy;
  return {
    id,
    name,
    managed_by,
    version: latest_version,
    digest,
    active: active_version,
    deleted: deleted_at !== null,
  };
}

type RecordedKey = ApiKeyEntry["key"];

/**
 * Returns the entry that records a created or revoked key.
 * @param by the key that made the change; null if the first start of the service or a command made it
 */
export function buildKeyEntry(
  change: ApiKeyEntry["change"],
  key: Omit<RecordedKey, "expires_at"> & { expires_at: number | null },
  at: number,
  by: Actor | null,
): ApiKeyEntry {
  const { id, name, hash, scopes, agent_id, owner, expires_at } = key;
  return {
    type: "api_key",
    v: 1,
    at: toRfc3339(at),
    change,
    key: {
      id,
      name,
      hash,
      scopes,
      agent_id,
      owner,
      expires_at: expires_at === null ? null : toRfc3339(expires_at),
    },
    by,
  };
}
