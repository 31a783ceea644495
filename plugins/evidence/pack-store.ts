/** What the writer of a pack reads: a store, or the store of the running service. */
import type { StorageReader } from "../../src/storage/index.ts";

export type PackStore = Pick<
  StorageReader,
  | "action"
  | "actionsById"
  | "checkpoint"
  | "entries"
  | "entriesOfAction"
  | "followedEntries"
  | "head"
  | "leafHashes"
  | "meta"
  | "policySet"
  | "tile"
  | "tileRoots"
>;
