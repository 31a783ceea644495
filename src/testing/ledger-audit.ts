/** The full audit that tests end with. */
import type { StorageReader } from "../contract/storage.ts";
import { verifyEd25519 } from "../identity/vault.ts";
import { auditStore as audit, type StoreAuditReport } from "../audit/store.ts";

/** Reads every entry and every action. `faults` is empty when everything holds. */
export function auditStore(reader: StorageReader, vkey?: string): Promise<StoreAuditReport> {
  return audit(reader, { verify: verifyEd25519, ...(vkey === undefined ? {} : { vkey }) });
}
