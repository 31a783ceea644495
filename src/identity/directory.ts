/**
 * Keys, users and agents as the ledger records them, and the states that plugins fold from the ledger. The tables are
 * only a cache, which anyone with write access to the database can change. Therefore each request compares the key's
 * owner and rights with this directory.
 */
import type { AuditedFeatures } from "../contract/audit.ts";
import { StorageError, type EntryRow, type KeyRow, type LedgerHead, type StorageReader } from "../contract/storage.ts";
import { findDifferingColumns } from "../domain/differing-columns.ts";
import { decodeEntry, type EntryBody, type PermitKeyEntry, type UserEntry } from "../domain/entries.ts";
import type { Fold } from "../domain/fold.ts";
import { addFollowedEntry, NO_FOLLOWED_ENTRIES } from "../domain/followed-digest.ts";
import { equalBytes } from "../domain/hash.ts";
import { hashLeaf } from "../domain/merkle.ts";
import { type KeyColumns, keyState } from "../domain/recorded-keys.ts";
import { registeredAgentState } from "../domain/registered-agents.ts";
import type { RecordedKey } from "../domain/vote-people.ts";
import { userOfPrincipal } from "../domain/principals.ts";
import { parseRfc3339 } from "../domain/time.ts";
import { hasEnrolled, toRecordedKey, userState, type Users } from "../domain/users.ts";
import { readFollowedPages } from "../ledger/followed-pages.ts";
import { States } from "../ledger/states.ts";

interface RecordedPermitKey {
  /** Public key in hex. */
  public_key: string;
  previous: string;
  /** Expiry of the previous permit key. Milliseconds since the epoch. */
  previous_until: number;
}

const permitKeyState: Fold<readonly RecordedPermitKey[]> = {
  name: "permit_keys",
  initial: [],
  on: {
    permit_key: (keys, { public_key, previous, previous_until }: PermitKeyEntry) => [
      ...keys,
      { public_key, previous, previous_until: parseRfc3339(previous_until) as number },
    ],
  },
};

/** The folds that the directory needs. Plugins declare others. */
export const DIRECTORY_FOLDS = [keyState, registeredAgentState, userState, permitKeyState] as const;

type FollowedHead = Pick<LedgerHead, "size" | "epoch" | "followed_digest">;

export class Directory {
  private states: States;
  /** Whether a user has ever enrolled. */
  private hasPeople = false;
  /** Sequence number after the last entry that was read. */
  private next = 0;
  /** Digest of the entries that were read. */
  private digest = NO_FOLLOWED_ENTRIES;
  private followed = -1;
  /** The recorded key that each compared row equals. Such a row does not have to be compared again. */
  private readonly unaltered = new WeakMap<KeyRow, KeyColumns>();

  /** Types of entries whose features are loaded. */
  private readonly declared: ReadonlySet<string>;
  /** Types of followed entries that no loaded plugin has to read. */
  private readonly ignored: ReadonlySet<string>;

  /**
   * @param features the folds of plugins, in addition to `DIRECTORY_FOLDS`, and all declared types of entries. A fold
   *   can also read entry types of plugins that are not loaded
   * @param ignored types of entries of features that the operator has removed
   */
  constructor({ folds, entryTypes }: Pick<AuditedFeatures, "folds" | "entryTypes">, ignored: readonly string[] = []) {
    this.declared = new Set(entryTypes);
    this.ignored = new Set(ignored);
    this.states = States.initial([...DIRECTORY_FOLDS, ...folds]);
  }

  /**
   * Reads the entries that were recorded since the last call. Does nothing if the epoch is not newer, because nothing
   * changes within an epoch. Rejects with StorageError "corrupt" if the followed entries do not match the head, and
   * "unavailable" if no loaded plugin declares and reads the type of one.
   * @param head a committed head
   */
  async follow(reader: Pick<StorageReader, "followedEntries">, head: FollowedHead): Promise<void> {
    if (head.epoch <= this.followed) return;
    const entries: (EntryBody & { seq: number })[] = [];
    let unread: EntryRow | null = null;
    let { states, digest, next } = this;
    for await (const rows of readFollowedPages(reader, next)) {
      // Another process may have appended entries after this head.
      const covered = rows.filter(({ seq }) => seq < head.size);
      for (const row of covered) {
        const isRead = states.follows(row.type) && this.declared.has(row.type);
        if (!isRead && !this.ignored.has(row.type)) unread ??= row;
        const entry = decodeFollowed(row);
        states = applyEntry(states, entry);
        digest = addFollowedEntry(digest, row.leaf_hash);
        entries.push(entry);
        next = row.seq + 1;
      }
      if (covered.length < rows.length) break;
    }
    // A concurrent call may have followed a newer head.
    if (head.epoch <= this.followed) return;
    if (!equalBytes(digest, head.followed_digest)) throw hiddenEntriesError(head);
    // Without its feature, an active stop, for example, would deny nothing.
    if (unread !== null) throw unreadEntriesError(unread);
    const isEnrolled = (entry: EntryBody): boolean => entry.type === "user" && hasEnrolled((entry as UserEntry).user);
    this.hasPeople ||= entries.some(isEnrolled);
    Object.assign(this, { states, digest, next, followed: head.epoch });
  }

  /** Returns the states as of the last commit that was followed. */
  current(): States {
    return this.states;
  }

  /** Returns a key, or a user in the form of a key; null if the id is unknown. */
  key(id: string): RecordedKey | null {
    const user = this.users().get(id);
    return this.states.state(keyState).get(id) ?? (user === undefined ? null : toRecordedKey(user));
  }

  /** Returns the keys with this name, including revoked keys. */
  keysNamed(name: string): KeyColumns[] {
    return [...this.states.state(keyState).values()].filter((key) => key.name === name);
  }

  /** Returns the users as of the last commit that was followed. */
  users(): Users {
    return this.states.state(userState);
  }

  /** Returns true if no user is the owner. Returns false until the first user has enrolled. */
  isUnknownOwner(owner: string | null): boolean {
    return this.hasPeople && !this.users().has(userOfPrincipal(owner) ?? "");
  }

  /** Returns the recorded keys that sign permits, in order. */
  permitKeys(): readonly RecordedPermitKey[] {
    return this.states.state(permitKeyState);
  }

  /** Returns the names of the columns in which the row differs from the ledger. */
  altered(row: KeyRow): string[] {
    const recorded = this.states.state(keyState).get(row.id);
    if (recorded === undefined) return ["id"];
    // Cache the result, because every request of a credential checks the same row.
    if (this.unaltered.get(row) === recorded) return [];
    const altered = findDifferingColumns(recorded, row).filter(
      // The row can be newer than the entries that were read. A key that was revoked in either has no rights.
      (column) => column !== "revoked_at" || row.revoked_at === null,
    );
    if (altered.length === 0) this.unaltered.set(row, recorded);
    return altered;
  }
}

function decodeFollowed({ seq, bytes, leaf_hash }: EntryRow): EntryBody & { seq: number } {
  if (!equalBytes(hashLeaf(bytes), leaf_hash))
    throw new StorageError("corrupt", `entry ${seq} of the ledger was changed; run assent audit`);
  return decodeEntry<EntryBody & { seq: number }>(bytes);
}

function applyEntry(states: States, entry: EntryBody & { seq: number }): States {
  try {
    return states.after(entry);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new StorageError(
      "corrupt",
      `entry ${entry.seq} of the ledger is not valid: ${error.message}; run assent audit`,
    );
  }
}

function unreadEntriesError({ type, seq }: EntryRow): StorageError {
  return new StorageError(
    "unavailable",
    `entry ${seq} has the type "${type}", on which decisions depend, and no loaded plugin reads it: load its plugin, or add the type to ledger.ignored_entries if the feature was removed on purpose`,
  );
}

function hiddenEntriesError({ size }: FollowedHead): StorageError {
  return new StorageError(
    "corrupt",
    `the entries about users, keys, agents, stops and other states are not those that the head (size ${size}) states: someone changed, hid or added one in the database. Restore a backup, or run assent audit`,
  );
}
