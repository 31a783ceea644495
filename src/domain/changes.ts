/** Changes of keys and policies as entries have them. */
import type { Actor, KeyEntry, PolicyChange } from "./entries.ts";
import { toRfc3339 } from "./time.ts";

interface ChangedPolicy {
  id: string;
  name: string;
  managed_by: string | null;
  latest_version: number;
  active_version: number | null;
  deleted_at: number | null;
}

/**
 * @param policy as the change left it
 * @param digest of the definition of its newest version, where the change made that version; null where it made none
 */
export function toPolicyChange(policy: ChangedPolicy, digest: string | null): PolicyChange {
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

type RecordedKey = KeyEntry["key"];

/** @param by null where no key did it: at the first start, and by a command */
export function buildKeyEntry(
  change: KeyEntry["change"],
  key: Omit<RecordedKey, "expires_at"> & { expires_at: number | null },
  at: number,
  by: Actor | null,
): KeyEntry {
  const { id, name, hash, scopes, agent_id, owner, expires_at } = key;
  return {
    type: "api_key",
    v: 2,
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
