/** The ledger's tables: entries, tiles, the head, the newest signed checkpoint. */
import type { EntryType } from "../../domain/entries.ts";

export type { EntryType };

/** One ledger record. `leaf_hash` is SHA-256(0x00 ‖ bytes). */
export interface EntryRow {
  seq: number;
  type: EntryType;
  leaf_hash: Uint8Array;
  bytes: Uint8Array;
  action_id: string | null;
  agent_id: string | null;
  /** Key that submitted the entry's action. It determines who can see the entry. */
  submitted_by: string | null;
  /** Whether a fold reads this type, so that every process reads the entry when it starts. */
  followed: boolean;
  created_at: number;
}

/** A full tile: 256 hashes of `level`, and the root over them (a node of level + 1). */
export interface TileRow {
  level: number;
  index: number;
  /** 256 × 32 bytes. */
  hashes: Uint8Array;
  root: Uint8Array;
}

/** The only row of the ledger that changes. */
export interface LedgerHead {
  size: number;
  root: Uint8Array;
  /** Roots of the maximal perfect subtrees, largest first (the tree's right edge). Empty when size is 0. */
  edge: Uint8Array[];
  /** Digest of the active policy set, or null before the first activation. */
  policy_set: string | null;
  /** Increases with each change that invalidates caches, such as a change of a key or an agent. */
  epoch: number;
  /**
   * Digest of all followed entries (domain/followed-digest.ts). Proves that a process which starts has read all of them,
   * and no others.
   */
  followed_digest: Uint8Array;
  /**
   * MAC over the other members, under a key that is derived from the service's secret. Empty if there are no entries.
   * Proves that a process of the service appended the entries, even if no checkpoint covers them yet.
   */
  seal: string;
}

/** Name in `meta` of the incarnation that the processes have agreed on. */
export const SETTLED_INCARNATION_KEY = "settled_incarnation";

/** The head with the identity of the database that it was read from. */
export interface StoredHead extends LedgerHead {
  /** Absent if no other process can use the store. */
  server?: {
    /**
     * Identifies the running database. Changes with each restart, failover and restore. One statement reads it together
     * with the head, so both come from the same database.
     */
    incarnation: string;
    /** True once the processes have agreed that this database contains every ledger state that any of them has read. */
    isSettled: boolean;
  };
}

export interface LedgerReads {
  head(): Promise<StoredHead>;
  /** Returns the newest stored checkpoint, as signed-note text. */
  checkpoint(): Promise<{ size: number; note: string } | null>;
  /** Returns the entries with `from <= seq < to`, ascending. */
  entries(from: number, to: number): Promise<EntryRow[]>;
  entryByHash(leafHash: Uint8Array): Promise<EntryRow | null>;
  /** Returns all entries about one action, ascending. Finds the decision through the action's `decision_seq`. */
  entriesOfAction(actionId: string): Promise<EntryRow[]>;
  /** Returns the followed entries with `seq >= from`, ascending. */
  followedEntries(from: number, limit: number): Promise<EntryRow[]>;
  /** Returns the leaf hashes with `from <= seq < to`, ascending. */
  leafHashes(from: number, to: number): Promise<Uint8Array[]>;
  tile(level: number, index: number): Promise<TileRow | null>;
  /** Returns the roots of the tiles with `from <= index < to` of a level, ascending. */
  tileRoots(level: number, from: number, to: number): Promise<Uint8Array[]>;
}

export interface LedgerWrites {
  /**
   * Appends entries and updates the head. `entries[0].seq` must be the current size, the other entries must follow
   * without a gap, `head.size` must be the new size, and `head.epoch` must not decrease. Otherwise the call rejects and
   * the transaction fails. Without entries, updates only the other members of the head.
   */
  append(entries: readonly EntryRow[], tiles: readonly TileRow[], head: LedgerHead): Promise<void>;
  /** Replaces the stored checkpoint unless a larger checkpoint is already stored. */
  putCheckpoint(size: number, note: string): Promise<void>;
}
