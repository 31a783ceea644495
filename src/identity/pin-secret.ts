import type { Vault } from "../contract/core-host.ts";
import type { Logger } from "../contract/host.ts";
import type { RowSeals } from "../contract/row-seals.ts";
import type { Storage, StorageReader } from "../contract/storage.ts";
import { toHex } from "../domain/hash.ts";
import { VaultError } from "./key-files.ts";
import { resealRows } from "./reseal-rows.ts";

const FINGERPRINT_KEY = "secret_fingerprint";

const fingerprintOf = (vault: Pick<Vault, "mac">): string => toHex(vault.mac("secret-fingerprint", new Uint8Array(0)));

/** Returns true if the store was first used with another secret than this vault has. */
export async function hasOtherSecret(
  storage: Pick<StorageReader, "meta">,
  vault: Pick<Vault, "mac">,
): Promise<boolean> {
  const stored = await storage.meta(FINGERPRINT_KEY);
  return stored !== null && stored !== fingerprintOf(vault);
}

/**
 * Checks that the token secret is the one with which the store was first used, by comparing a stored MAC. Rows are
 * sealed with this secret, and processes that share a database accept each other's approval tokens. If the secrets
 * differ, throws VaultError unless `accept` is true; otherwise seals all rows and the head with the new secret. Then
 * also throws VaultError if entries are unsigned, unless `acceptUnsigned` is true: only the earlier secret proves that
 * the service recorded them.
 */
export async function pinSecret(
  storage: Storage,
  { vault, seals }: { vault: Vault; seals: RowSeals },
  log: Logger,
  { accept, acceptUnsigned = false }: { accept: boolean; acceptUnsigned?: boolean },
): Promise<void> {
  const isOther = await hasOtherSecret(storage, vault);
  if (isOther && !accept)
    throw new VaultError(
      "the token secret is not the one that this store was first used with: give every process on the store the same ASSENT_SECRET, or put the file `secret` back into the data folder. To change the secret, stop all processes, run assent audit with the earlier secret, and start the first process with --accept-secret",
    );
  if (isOther) {
    const [{ size }, checkpoint] = [await storage.head(), await storage.checkpoint()];
    const signedSize = checkpoint?.size ?? 0;
    if (size > signedSize && !acceptUnsigned)
      throw new VaultError(
        `the secret cannot be changed while entries are unsigned (${signedSize} to ${size - 1}), because only the earlier secret proves that this service recorded them: start and stop the service once with the earlier secret. If that is lost, read these entries, and add --accept-rollback`,
      );
    await resealRows(storage, seals);
  }
  await storage.write((tx) => tx.putMeta(FINGERPRINT_KEY, fingerprintOf(vault)));
  if (isOther)
    log.warn("the token secret has changed: approval tokens that were issued with the earlier secret are invalid");
}
