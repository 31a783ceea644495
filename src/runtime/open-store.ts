/** Opens the store of a service, and checks that this process has the store's pinned keys and environment. */
import type { Config } from "../config/index.ts";
import type { Vault } from "../contract/core-host.ts";
import type { Logger } from "../contract/host.ts";
import type { RowSeals } from "../contract/row-seals.ts";
import { StorageError, type Storage } from "../contract/storage.ts";
import { formatVkey, parseVkey } from "../domain/checkpoint.ts";
import { equalBytes } from "../domain/hash.ts";
import { currentVkey, listVkeys } from "../domain/log-keys.ts";
import { openLogKeyring, type LogKeyring } from "../identity/log-keyring.ts";
import { assertLogKey, pinLog } from "../identity/pin-log.ts";
import { pinSecret } from "../identity/pin-secret.ts";
import { createRowSeals } from "../identity/row-seals.ts";
import { openVault } from "../identity/vault.ts";
import { HeadReader } from "../ledger/head-reader.ts";
import { createLogKeyBook, type LogKeyBook } from "../ledger/sign/log-key-book.ts";
import { pinEnvironment } from "../policies/pin-environment.ts";

export interface OpenStore {
  readonly storage: Storage;
  readonly vault: Vault;
  readonly seals: RowSeals;
  /** The log's keys that this process has. */
  readonly ring: LogKeyring;
  /** The log's keys as the ledger records them. */
  readonly book: LogKeyBook;
  /** Name of the log. */
  readonly origin: string;
  readonly heads: HeadReader;
}

/** Key in `meta` that marks a store into which `assent copy` has not finished copying. */
export const UNFINISHED_COPY_KEY = "unfinished_copy";

/** @param options.storage a storage that is not open yet */
export async function openStore(options: {
  config: Config;
  storage: Storage;
  log: Logger;
  clock(): number;
  acceptSecret: boolean;
  acceptRollback: boolean;
  acceptEnvironment: boolean;
}): Promise<OpenStore> {
  const { config, storage, log, clock } = options;
  await storage.open();
  if (((await storage.meta(UNFINISHED_COPY_KEY)) ?? "") !== "")
    throw new StorageError(
      "unavailable",
      "this store is an unfinished copy of another one; run the same `assent copy` again to finish it",
    );
  const vault = openVault(config, log);
  const seals = createRowSeals(vault, log);
  const ring = openLogKeyring(config, log);
  const { origin, first } = await pinLog(storage, config.ledger.origin, ring.publicKey);
  const book = createLogKeyBook({ first, signer: ring.signer, verify: vault.verify, clock });
  await followLog(storage, book, ring, origin);
  await pinSecret(storage, { vault, seals }, log, {
    accept: options.acceptSecret,
    acceptUnsigned: options.acceptRollback,
  });
  await pinEnvironment(storage, config.environment, log, options.acceptEnvironment);
  return { storage, vault, seals, ring, book, origin, heads: await HeadReader.open(storage, seals) };
}

/** Reads the keys of the log. Throws VaultError if this process does not have the current key. */
async function followLog(storage: Storage, book: LogKeyBook, ring: LogKeyring, origin: string): Promise<void> {
  await book.follow(storage, (await storage.head()).epoch);
  const { name, publicKey } = parseVkey(currentVkey(book.keys()));
  // Finish an interrupted rotation, which may not have renamed the file.
  ring.settle(name, publicKey);
  assertLogKey(book.keys(), ring.signer(name, publicKey) !== null, formatVkey(origin, ring.publicKey));
}

/** Returns true if this key signs or has signed the log. */
export function isLogKey({ book, ring, origin }: OpenStore, publicKey: Uint8Array): boolean {
  return equalBytes(publicKey, ring.publicKey) || listVkeys(book.keys()).includes(formatVkey(origin, publicKey));
}
