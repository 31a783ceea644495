/** The ledger's tables: entries, tiles, the head, the newest signed checkpoint. */
import type { EntryType, FollowedType } from "../../domain/entries.ts";

export type { EntryType, FollowedType };

/** One ledger record. `bytes` is what `leaf_hash` covers: SHA-256(0x00 ‖ bytes). */
export interface EntryRow {
  seq: number;
  type: EntryType;
  leaf_hash: Uint8Array;
  bytes: Uint8Array;
  action_id: string | null;
  agent_id: string | null;
  /** Key that submitted the action the entry speaks of; decides who may see it. */
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
  /** Grows whenever a key or an agent changes; what was cached under an older one is stale. */
  epoch: number;
}

/** Name in `meta` of the incarnation that the processes have agreed on. */
export const SETTLED_INCARNATION = "settled_incarnation";

/** The head, and the database that it was read from. */
export interface StoredHead extends LedgerHead {
  /** Absent where one process has the store to itself. */
  server?: {
    /**
     * Names the running database: another value after each restart, failover and restore. It is read by the same
     * statement as the head, so that both are of one database.
     */
    incarnation: string;
    /** True once the processes have agreed that this database holds everything that any of them has seen. */
    isSettled: boolean;
  };
}

export interface LedgerReads {
  head(): Promise<StoredHead>;
  /** The newest signed checkpoint that was stored, as signed-note text. */
  checkpoint(): Promise<{ size: number; note: string } | null>;
  /** Entries `from <= seq < to`, ascending. */
  entries(from: number, to: number): Promise<EntryRow[]>;
  entryByHash(leafHash: Uint8Array): Promise<EntryRow | null>;
  /** All entries that speak of one action, ascending. Its decision may be found by the stored action's `decision_seq` alone. */
  entriesOfAction(actionId: string): Promise<EntryRow[]>;
  /** Entries of one of these types with `seq >= from`, ascending. */
  entriesOfType(type: FollowedType, from: number, limit: number): Promise<EntryRow[]>;
  /** Leaf hashes `from <= seq < to`, ascending. */
  leafHashes(from: number, to: number): Promise<Uint8Array[]>;
  tile(level: number, index: number): Promise<TileRow | null>;
  /** Roots of the tiles `from <= index < to` of a level, ascending. */
  tileRoots(level: number, from: number, to: number): Promise<Uint8Array[]>;
}

export interface LedgerWrites {
  /**
   * Appends entries and moves the head. `entries[0].seq` must be the current size, the rest follow
   * without a gap, `head.size` is the size after, and `head.epoch` is not smaller than before; otherwise it
   * rejects and the transaction is lost. Without entries it moves the rest of the head.
   */
  append(entries: readonly EntryRow[], tiles: readonly TileRow[], head: LedgerHead): Promise<void>;
  /** Replaces the stored checkpoint unless a larger one is stored. */
  putCheckpoint(size: number, note: string): Promise<void>;
}
