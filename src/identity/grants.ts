/** Reads grants outside the ledger's lock. Each process reads new entries of grants whenever the epoch changes. */
import type { GrantList } from "../contract/grants.ts";
import type { LedgerHead, StorageReader } from "../contract/storage.ts";
import type { Directory } from "./directory.ts";

export function createGrantList(options: {
  storage: StorageReader;
  directory: Directory;
  head(): Promise<LedgerHead>;
}): GrantList {
  const { directory, storage } = options;
  return {
    async list() {
      const { epoch } = await options.head();
      await directory.follow(storage, epoch);
      return { grants: directory.grants(), stops: directory.stops() };
    },
  };
}
