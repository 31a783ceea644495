import type { Vault } from "../contract/core-host.ts";
import type { Logger } from "../contract/host.ts";
import type { Storage } from "../contract/storage.ts";
import { toHex } from "../domain/hash.ts";
import { VaultError } from "./key-files.ts";

/**
 * Checks that the token secret is the secret with which the database was first used, by comparing a stored MAC.
 * Processes that share a database need the same secret, because each process accepts approval tokens of the others. For
 * a shared database, throws VaultError if the secrets differ and `accept` is false.
 */
export async function pinSecret(storage: Storage, vault: Vault, log: Logger, accept: boolean): Promise<void> {
  const fingerprint = toHex(vault.mac("secret-fingerprint", new Uint8Array(0)));
  const pinned = await storage.write(async (tx) => {
    const stored = await tx.meta("secret_fingerprint");
    if (stored === null || accept || storage.exclusive) await tx.putMeta("secret_fingerprint", fingerprint);
    return stored;
  });
  if (pinned === null || pinned === fingerprint) return;
  if (!storage.exclusive && !accept) {
    throw new VaultError(
      "ASSENT_SECRET is not the one that this database was started with: give every process on it the same. To change it, stop them all and start the first one with --accept-secret",
    );
  }
  log.warn("the token secret has changed: approval tokens that were issued with the previous secret are invalid");
}
