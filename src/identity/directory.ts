/**
 * Keys, users, agents and stops as the ledger records them. The tables are only a cache, which anyone with write access to
 * the database can change. So the owner and the rights of a key are verified against this directory ahead of each write.
 */
import { StorageError, type EntryRow, type KeyRow, type StorageReader } from "../contract/storage.ts";
import {
  FOLLOWED_TYPES,
  decodeEntry,
  type AgentEntry,
  type FollowedType,
  type GrantEntry,
  type KeyEntry,
  type PermitKeyEntry,
  type StopEntry,
  type UserEntry,
} from "../domain/entries.ts";
import { equalBytes } from "../domain/hash.ts";
import { applyGrantEntries, NO_GRANTS, type Grants } from "../domain/grants.ts";
import { hashLeaf } from "../domain/merkle.ts";
import { foldName } from "../domain/names.ts";
import { NO_STOPS, applyStopEntry, type Stops } from "../domain/stops.ts";
import type { RecordedKey } from "../domain/standing.ts";
import { parseRfc3339 } from "../domain/time.ts";
import { applyUserEntry, userAsKey, type User, type Users } from "../domain/users.ts";

const PAGE = 500;

/** The ledger itself follows the log's keys: src/ledger/sign/log-key-book.ts. */
type DirectoryType = Exclude<FollowedType, "log_key">;
const TYPES = FOLLOWED_TYPES.filter((type): type is DirectoryType => type !== "log_key");

interface RecordedPermitKey {
  /** Hex. */
  public_key: string;
  previous: string;
  /** Milliseconds. */
  previous_until: number;
}

export interface Directory {
  /**
   * Reads the entries that were recorded since the last call. `epoch` is that of a committed head; under the same epoch
   * nothing has changed.
   */
  follow(reader: Pick<StorageReader, "entriesOfType">, epoch: number): Promise<void>;
  /** Returns a key, or a user in the form of a key; null if there is none. */
  key(id: string): RecordedKey | null;
  /** Returns the keys with this name, revoked ones included. */
  keysNamed(name: string): RecordedKey[];
  /** Returns the users as of the last commit that was followed. */
  users(): Users;
  /** Returns the stops as of the last commit that was followed. */
  stops(): Stops;
  /** Returns the grants as of the last commit that was followed. */
  grants(): Grants;
  /** Returns the registered ids that equal the folded name except for their spelling. */
  spellings(folded: string): readonly string[];
  /** Returns the recorded keys that sign permits, in order. */
  permitKeys(): readonly RecordedPermitKey[];
  /** Returns the names of the columns in which the row differs from the ledger. */
  altered(row: KeyRow): string[];
}

export function createDirectory(): Directory {
  const keys = new Map<string, RecordedKey>();
  /** Registered ids that differ from their folded name. */
  const spelt = new Map<string, string[]>();
  const permitKeys: RecordedPermitKey[] = [];
  const next: Record<DirectoryType, number> = { api_key: 0, agent: 0, user: 0, stop: 0, grant: 0, permit_key: 0 };
  // Replaced instead of changed when entries arrive, so that a batch or request keeps the users that it started with.
  let users = new Map<string, User>();
  let stops: Stops = NO_STOPS;
  const grants = createGrantFollower();
  let followed = -1;
  /** The recorded key that each row was found to match. */
  const unaltered = new WeakMap<KeyRow, RecordedKey>();

  function take(row: EntryRow, type: keyof typeof next): void {
    if (row.seq < next[type]) return;
    if (!equalBytes(hashLeaf(row.bytes), row.leaf_hash))
      throw new StorageError("corrupt", `entry ${row.seq} of the ledger was changed; run assent audit`);
    if (type === "stop") stops = applyStopEntry(stops, decodeEntry<StopEntry>(row.bytes));
    else if (type === "api_key") takeKey(row);
    else if (type === "agent") takeAgent(row);
    else if (type === "user") takeUser(row);
    else if (type === "grant") grants.take(row);
    else takePermitKey(row);
    next[type] = row.seq + 1;
  }

  function takeAgent({ bytes }: EntryRow): void {
    const { change, agent } = decodeEntry<AgentEntry>(bytes);
    const id = agent["id"] as string;
    const name = foldName(id);
    if (change === "registered" && name !== id) spelt.set(name, [...(spelt.get(name) ?? []), id]);
  }

  function takeUser({ seq, bytes }: EntryRow): void {
    const entry = decodeEntry<UserEntry>(bytes);
    try {
      users.set(entry.user.id, applyUserEntry(users.get(entry.user.id) ?? null, entry));
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      throw new StorageError(
        "corrupt",
        `entry ${seq} of the ledger makes no sense: ${error.message}; run assent audit`,
      );
    }
  }

  function takePermitKey({ bytes }: EntryRow): void {
    const { public_key, previous, previous_until } = decodeEntry<PermitKeyEntry>(bytes);
    permitKeys.push({ public_key, previous, previous_until: parseRfc3339(previous_until) as number });
  }

  function takeKey(row: EntryRow): void {
    const { change, key, by } = decodeEntry<KeyEntry>(row.bytes);
    const earlier = keys.get(key.id);
    // If several entries have the same id, the first one created the key.
    if (change === "revoked") {
      if (earlier !== undefined) keys.set(key.id, { ...earlier, revoked: true });
    } else if (earlier === undefined) {
      const expires_at = key.expires_at === null ? null : parseRfc3339(key.expires_at);
      keys.set(key.id, { ...key, expires_at, created_by: by?.key_id ?? null, revoked: false });
    }
  }

  return {
    async follow(reader, epoch) {
      if (epoch <= followed) return;
      for (const type of TYPES) {
        for (;;) {
          const rows = await reader.entriesOfType(type, next[type], PAGE);
          if (type === "user" && rows.length > 0) users = new Map(users);
          for (const row of rows) take(row, type);
          grants.apply();
          if (rows.length < PAGE) break;
        }
      }
      followed = Math.max(followed, epoch);
    },
    stops: () => stops,
    grants: grants.current,
    key(id) {
      const user = users.get(id);
      return keys.get(id) ?? (user === undefined ? null : userAsKey(user));
    },
    keysNamed: (name) => [...keys.values()].filter((key) => key.name === name),
    users: () => users,
    permitKeys: () => permitKeys,
    spellings: (folded) => spelt.get(folded) ?? [],
    altered(row) {
      const recorded = keys.get(row.id);
      if (recorded === undefined) return ["id"];
      // A credential keeps its row, and each of its requests checks that row again.
      if (unaltered.get(row) === recorded) return [];
      const { scopes, revoked, ...columns } = recorded;
      const altered = Object.entries(columns)
        .filter(([column, value]) => row[column as keyof KeyRow] !== value)
        .map(([column]) => column);
      if (scopes.length !== row.scopes.length || scopes.some((scope, i) => scope !== row.scopes[i]))
        altered.push("scopes");
      if (revoked && row.revoked_at === null) altered.push("revoked_at");
      if (altered.length === 0) unaltered.set(row, recorded);
      return altered;
    },
  };
}

/** Collects a page of grant entries and applies them at once, because each application copies the maps. */
function createGrantFollower() {
  let grants: Grants = NO_GRANTS;
  let entries: (GrantEntry & { seq: number })[] = [];
  return {
    take: ({ bytes }: EntryRow): void => void entries.push(decodeEntry<GrantEntry>(bytes)),
    apply(): void {
      const page = entries;
      entries = [];
      try {
        grants = applyGrantEntries(grants, page);
      } catch (error) {
        if (!(error instanceof RangeError)) throw error;
        const words = `the grants in the ledger contradict each other: ${error.message}; run assent audit`;
        throw new StorageError("corrupt", words);
      }
    },
    current: (): Grants => grants,
  };
}
