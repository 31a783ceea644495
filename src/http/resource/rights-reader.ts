/** Reads the rights of keys and users outside a transaction. */
import type { CoreHost, RightsReader } from "../../contract/core-host.ts";
import type { Snapshot } from "../../contract/ledger.ts";

/** Returns the reader for `host.keys.rightsOf` at a snapshot. */
export function rightsReader({ storage }: Pick<CoreHost, "storage">, snapshot: Snapshot): RightsReader & Snapshot {
  return { ...snapshot, key: (id) => storage.key(id) };
}
