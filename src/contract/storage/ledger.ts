/** The ledger's tables: entries, tiles, the head, the newest signed checkpoint. */
import type { EntryType, FollowedType } from "../../domain/entries.ts";

export type { EntryType, FollowedType };

/** One ledger record. `leaf_hash` is SHA-256(0x00 ‖ bytes). */
export interface EntryRow {
  seq: number;
  type: EntryType;
  leaf_hash: Uint8Array;
  bytes: Uint8Array;
  action_id: string | null;
  agent_id: string | null;
  /** Key that submitted the entry's action; determines who can see the entry. */
  submitted_by: string | null;
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

/** The one mutable row of the ledger. */
export interface LedgerHead {
  size: number;
  root: Uint8Array;
  /** Roots of the maximal perfect subtrees, largest first (the tree's right edge). Empty when size is 0. */
  edge: Uint8Array[];
  /** Digest of the active policy set, or null before the first activation. */
  policy_set: string | null;
  /** Increases with each change of a key or an agent, among others. Caches of an older epoch are stale. */
  epoch: number;
}

/** Name in `meta` of the incarnation that the processes have agreed on. */
export const SETTLED_INCARNATION = "settled_incarnation";

/** The head, and the database that it was read from. */
export interface StoredHead extends LedgerHead {
  /** Absent if one process has the store to itself. */
  server?: {
    /**
     * Identifies the running database: it changes with each restart, failover and restore. The same statement reads it
     * and the head, so both come from one database.
     */
    incarnation: string;
    /** True once the processes have agreed that this database holds everything that any of them has seen. */
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
  /** Returns the entries of one of these types with `seq >= from`, ascending. */
  entriesOfType(type: FollowedType, from: number, limit: number): Promise<EntryRow[]>;
  /** Returns the leaf hashes with `from <= seq < to`, ascending. */
  leafHashes(from: number, to: number): Promise<Uint8Array[]>;
  tile(level: number, index: number): Promise<TileRow | null>;
  /** Returns the roots of the tiles with `from <= index < to` of a level, ascending. */
  tileRoots(level: number, from: number, to: number): Promise<Uint8Array[]>;
}

export interface LedgerWrites {
  /**
   * Appends entries and moves the head. `entries[0].seq` must be the current size, the others follow without a gap,
   * `head.size` is the new size, and `head.epoch` must not decrease; otherwise it rejects and the transaction fails.
   * Without entries, updates only the other members of the head.
   */
  append(entries: readonly EntryRow[], tiles: readonly TileRow[], head: LedgerHead): Promise<void>;
  /** Replaces the stored checkpoint unless a larger one is stored. */
  putCheckpoint(size: number, note: string): Promise<void>;
}
