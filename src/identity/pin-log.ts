import { uuidv7 } from "uuidv7";
import { StorageError, type Storage } from "../contract/storage.ts";
import { formatVkey } from "../domain/checkpoint.ts";
import { currentVkey, listVkeys, type LogKeys } from "../domain/log-keys.ts";
import { VaultError } from "./key-files.ts";

interface LogPin {
  /** Name of the log. */
  origin: string;
  /** Verifier key with which the log started. */
  first: string;
}

/**
 * Stores the log's name and first key if they are not stored yet. With a different key, the service would sign a second
 * history of the same entries.
 */
export async function pinLog(storage: Storage, configured: string | null, publicKey: Uint8Array): Promise<LogPin> {
  const first = async (): Promise<void> => {
    const name = configured ?? `assent.local/${uuidv7().slice(-12)}`;
    // Check again under the lock, because several processes can start on the same empty store.
    await storage.write(async (tx) => {
      if ((await tx.meta("log_vkey")) !== null) return;
      const { size } = await tx.head();
      if (size > 0)
        throw new StorageError(
          "corrupt",
          `the store has ${size} entries and does not name the log's key, which is stored before the first entry: the key was removed. Put a backup back, and run assent audit with --key`,
        );
      await tx.putMeta("log_origin", name);
      await tx.putMeta("log_vkey", formatVkey(name, publicKey));
    });
  };
  if ((await storage.meta("log_vkey")) === null) await first();
  const pinned = (await storage.meta("log_vkey")) ?? "";
  const origin = configured ?? (await storage.meta("log_origin")) ?? "";
  if (!pinned.startsWith(`${origin}+`)) throw foreignKeyError(pinned, formatVkey(origin, publicKey));
  return { origin, first: pinned };
}

/**
 * Throws VaultError if this process does not have the log's key.
 * @param held whether this process has the log's key
 * @param ownVkey the key that is configured for this process
 */
export function assertLogKey(keys: LogKeys, held: boolean, ownVkey: string): void {
  if (held) return;
  const { changes } = keys;
  const last = changes.at(-1);
  if (last === undefined || !listVkeys(keys).includes(ownVkey)) throw foreignKeyError(currentVkey(keys), ownVkey);
  throw new VaultError(
    `the log's key was changed at entry ${last.seq}, to ${last.vkey}, and the configured key is one of those before, ${ownVkey}: give the new one with ledger.key (ASSENT_LOG_KEY), or with ledger.next_key beside the old one while that signs along`,
  );
}

function foreignKeyError(pinned: string, vkey: string): VaultError {
  return new VaultError(
    `the store belongs to the log with the key ${pinned}, and the configured key is ${vkey}: put the log key (data folder, or ASSENT_LOG_KEY) and ASSENT_LOG_ORIGIN back that this store was started with`,
  );
}
