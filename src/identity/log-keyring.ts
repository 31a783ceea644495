/**
 * Loads the Ed25519 keys with which this process can sign checkpoints: the log's key, its successor, and predecessors
 * that still cosign for a limited time. The ledger determines which of them sign (src/ledger/sign/log-key-book.ts).
 */
import { sign, type KeyObject } from "node:crypto";
import { join } from "node:path";
import type { Config } from "../config/index.ts";
import type { Logger } from "../contract/host.ts";
import { computeKeyId, type NoteSigner } from "../domain/checkpoint.ts";
import { equalBytes, toHex } from "../domain/hash.ts";
import {
  CREATE_KEY_HINT,
  storeSecret,
  generatePrivateKey,
  moveIntoPlace,
  rawPublicKey,
  readOrCreateSecret,
  readPrivateKey,
  readSecret,
  VaultError,
} from "./key-files.ts";

const FILE = "log-key.pem";
/** File that contains a new key until the ledger has recorded it. */
const NEXT_FILE = "log-key.next.pem";
/**
 * Returns true for the name of a log key's file in the data folder. The name of a predecessor's file contains the key's
 * id.
 */
export const isLogKeyFile = (name: string): boolean => /^log-key(?:\.next|\.[0-9a-f]{8})?\.pem$/.test(name);

const NAME = "ledger key";
/** Minimum time between two searches for the same missing key. Milliseconds. */
const MISSED_FOR = 1000;

export interface LogKeyring {
  /**
   * Public key of `ledger.key`, or of the key file in the data folder. 32 raw bytes. An empty store starts its log with
   * this key.
   */
  readonly publicKey: Uint8Array;
  /**
   * Returns the signer of a key; null if this process does not have the key. Before it returns null, reads the files
   * again, at most once a second.
   */
  signer(name: string, publicKey: Uint8Array): NoteSigner | null;
  /**
   * Returns the public key of the successor. Creates the key if keys are stored in the data folder. Throws VaultError.
   */
  next(): Uint8Array;
  /** Makes the successor's file the file of the log's key, if it is in the data folder. Throws VaultError. */
  settle(name: string, current: Uint8Array): void;
}

/** Opens the keys of the log. Throws VaultError for a key that is missing or invalid. */
export function openLogKeyring({ data, ledger }: Pick<Config, "data" | "ledger">, log: Logger): LogKeyring {
  const files = { now: join(data, FILE), next: join(data, NEXT_FILE) };
  const keptFile = (id: Uint8Array): string => join(data, `log-key.${toHex(id)}.pem`);
  const keys = new Map<string, KeyObject>();
  const missed = new Map<string, number>();
  if (ledger.key === null && ledger.next_key !== null)
    throw new VaultError(
      "ledger.next_key (ASSENT_LOG_NEXT_KEY) requires ledger.key; without ledger.key, `assent keys rotate-log` creates the next key in the data folder",
    );

  function add(pem: string): Uint8Array {
    const key = readPrivateKey(pem, NAME);
    const publicKey = rawPublicKey(key);
    keys.set(toHex(publicKey), key);
    return publicKey;
  }

  /**
   * Reads the files that may contain the key. Ignores a file that cannot be read, because another one may contain it.
   */
  function findKey(id: Uint8Array): void {
    const isManaged = ledger.key === null;
    const places = ledger.key === null ? [files.now, files.next, keptFile(id)] : [ledger.key, ledger.next_key];
    for (const path of places) {
      try {
        if (path !== null && !(isManaged && readSecret(path, log) === null)) add(path);
      } catch (error) {
        if (!(error instanceof VaultError)) throw error;
        log.warn("a key of the log cannot be read", { error: error.message });
      }
    }
  }

  function keyOf(name: string, publicKey: Uint8Array): KeyObject | null {
    const hex = toHex(publicKey);
    if (!keys.has(hex) && (missed.get(hex) ?? -Infinity) + MISSED_FOR < performance.now()) {
      findKey(computeKeyId(name, 1, publicKey));
      missed.set(hex, performance.now());
    }
    return keys.get(hex) ?? null;
  }

  const publicKey = add(ledger.key ?? readOrCreateSecret(files.now, log, generatePrivateKey));
  if (ledger.next_key !== null) add(ledger.next_key);
  return {
    publicKey,
    signer(name, publicKey) {
      const key = keyOf(name, publicKey);
      return key && { name, publicKey: publicKey, sign: (message) => new Uint8Array(sign(null, message, key)) };
    },
    next() {
      if (ledger.key === null) return add(readOrCreateSecret(files.next, log, generatePrivateKey));
      if (ledger.next_key === null)
        throw new VaultError(
          `ledger.key names the log's key: ${CREATE_KEY_HINT}, give it to every process as ledger.next_key (ASSENT_LOG_NEXT_KEY), restart each of them, and run this command with it, too`,
        );
      return add(ledger.next_key);
    },
    settle(name, current) {
      const next = ledger.key === null ? readSecret(files.next, log) : null;
      if (next === null || !equalBytes(add(next), current)) return;
      const now = readSecret(files.now, log);
      // Copy the old key before it is replaced, so that after a crash the next start finds both.
      if (now !== null) {
        const before = add(now);
        if (!equalBytes(before, current)) storeSecret(keptFile(computeKeyId(name, 1, before)), now);
      }
      moveIntoPlace(files.next, files.now);
    },
  };
}
