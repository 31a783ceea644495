/** API keys, as the ledger records them. */
import type { Actor, ApiKeyEntry } from "./entries.ts";
import type { Fold } from "./fold.ts";
import { PersistentMap } from "./persistent-map.ts";
import { parseEntryTime, toRfc3339 } from "./time.ts";
import type { RecordedKey } from "./vote-people.ts";

/** The columns of a key's row that its entries determine. Member names are column names. */
export interface KeyColumns extends Omit<RecordedKey, "isUser"> {
  scopes: string[];
  created_at: number;
  revoked_at: number | null;
}

/** The members of a key that the entry of its creation contains. */
type EntryKey = Omit<ApiKeyEntry["key"], "expires_at"> & { expires_at: number | null };

/** The keys, keyed by id. */
export const keyState: Fold<PersistentMap<string, KeyColumns>> = {
  name: "keys",
  initial: PersistentMap.of(),
  on: {
    api_key(keys, { change, key, by, at }: ApiKeyEntry) {
      const earlier = keys.get(key.id);
      const time = parseEntryTime(at);
      if (change === "revoked") {
        if (earlier === undefined) throw new RangeError(`it revokes the key ${key.id}, which no entry created`);
        return keys.with(key.id, { ...earlier, revoked_at: time });
      }
      if (earlier !== undefined) throw new RangeError(`it creates the key ${key.id}, which an earlier entry created`);
      const expires_at = key.expires_at === null ? null : parseEntryTime(key.expires_at);
      const created_by = by?.key_id ?? null;
      return keys.with(key.id, { ...key, expires_at, created_by, created_at: time, revoked_at: null });
    },
  },
};

/**
 * Returns the entry that records a created or revoked key.
 * @param by the key that made the change; null if the first start of the service or a command made it
 */
export function buildKeyEntry(change: ApiKeyEntry["change"], key: EntryKey, at: number, by: Actor | null): ApiKeyEntry {
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
