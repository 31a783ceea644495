/** The complete audit, which tests run at their end. */
import { defaultConfig } from "../config/index.ts";
import type { StorageReader } from "../contract/storage.ts";
import type { Vault } from "../contract/core-host.ts";
import { createRowSeals } from "../identity/row-seals.ts";
import { verifyEd25519 } from "../identity/vault.ts";
import { collectDeclarations } from "../runtime/plugins/declarations.ts";
import { loadPlugins } from "../runtime/plugins/loader.ts";
import { auditStore as audit, type StoreAuditReport } from "../audit/audit-store.ts";

/**
 * Audits every entry and every row, and with a vault also the seals of rows. `faults` is empty if the store is valid.
 * @example
 * const { faults } = await auditStore(storage);
 * assert.deepEqual(faults, []);
 */
export async function auditStore(
  reader: StorageReader,
  vkey?: string,
  vault?: Pick<Vault, "mac">,
): Promise<StoreAuditReport> {
  return audit(reader, {
    features: collectDeclarations(await loadPlugins(defaultConfig({ data: "" }))),
    verify: verifyEd25519,
    ...(vkey === undefined ? {} : { vkey }),
    ...(vault === undefined ? {} : { seals: createRowSeals(vault, { error() {} }) }),
  });
}
