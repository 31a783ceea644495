/** Reads stops outside the ledger's lock. Each process reads new entries of stops whenever the epoch changes. */
import type { StopList } from "../contract/stops.ts";
import type { LedgerHead, StorageReader } from "../contract/storage.ts";
import { findStopFacts, type StopHistory } from "../domain/stops.ts";
import type { Directory } from "./directory.ts";

export function createStopList(options: {
  storage: StorageReader;
  directory: Directory;
  head(): Promise<LedgerHead>;
  clock(): number;
}): StopList {
  async function list(): Promise<StopHistory> {
    const { epoch } = await options.head();
    await options.directory.follow(options.storage, epoch);
    return options.directory.stops();
  }
  return { list, facts: async (action) => findStopFacts(await list(), action, options.clock()) };
}
