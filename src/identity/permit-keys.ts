/**
 * Manages the Ed25519 key that signs permits, and its predecessors, whose permits stay valid for a limited time. The
 * store pins the first key. The ledger records each later key together with the end of the previous key. So all
 * processes of a store accept the same keys, even while they sign with different keys.
 */
import { join } from "node:path";
import type { Config } from "../config/index.ts";
import { Refusal } from "../contract/errors.ts";
import type { Vault } from "../contract/core-host.ts";
import type { Logger } from "../contract/host.ts";
import type { Ledger } from "../contract/ledger.ts";
import type { Permits, PublishedPermitKey } from "../contract/permits.ts";
import { StorageError, type LedgerHead, type Storage } from "../contract/storage.ts";
import { fromHex, toHex } from "../domain/hash.ts";
import {
  checkPermit,
  signPermit,
  permitKeyId,
  type PermitFault,
  type PermitSubject,
  type PermitTerms,
} from "../domain/permit.ts";
import { toRfc3339 } from "../domain/time.ts";
import type { Directory } from "./directory.ts";
import {
  CREATE_KEY_HINT,
  generatePrivateKey,
  moveIntoPlace,
  rawPublicKey,
  readOrCreateSecret,
  readPrivateKey,
  readSecret,
  VaultError,
} from "./key-files.ts";
import { createSigner } from "./signer.ts";

const PIN_NAME = "permit_key";
const FILE = "permit-key.pem";
/** File that contains a new key until the ledger has recorded the key. */
const NEXT_FILE = "permit-key.next.pem";
/** Names of the permit key files in the data folder. */
export const PERMIT_KEY_FILES = [FILE, NEXT_FILE] as const;

const NAME = "permit key";

export interface PermitRotation {
  /** The new key as PEM or as the path of its file; null to create a key in the data folder. */
  key: string | null;
  /**
   * Overlap in which permits of the current key are still signed and accepted, in seconds. Ignored if this process does
   * not have the current key, because its permits then become invalid immediately.
   */
  overlap: number;
}

export interface PermitKeyService extends Permits {
  /** Records the next key. Rejects with VaultError, and records nothing, if the key is unsuitable. */
  rotate(ledger: Ledger, rotation: PermitRotation): Promise<{ kid: string; previous: string; until: number }>;
  /**
   * Returns true if this public key, in hex, is this process's permit key, or a current or former permit key of the
   * store.
   */
  signs(publicKey: string): boolean;
  close(): Promise<void>;
}

interface PermitKeyOptions {
  config: Pick<Config, "data" | "ledger" | "permits">;
  storage: Storage;
  directory: Directory;
  vault: Pick<Vault, "verify">;
  /** Returns true if this key signs or has signed the log. */
  isLogKey(publicKey: Uint8Array): boolean;
  head(): Promise<LedgerHead>;
  clock(): number;
  log: Logger;
  /** Whether to accept a key that does not belong to the store, so that a lost key can be replaced. */
  anyKey: boolean;
}

/**
 * Opens the permit keys. Throws VaultError for a key that is missing or invalid. Unless `anyKey` is set, also throws
 * for a key that does not belong to this store, or whose permits are no longer accepted.
 */
export async function openPermitKeys(options: PermitKeyOptions): Promise<PermitKeyService> {
  const { config, storage, directory, log } = options;
  const files = keyFiles(config);
  await directory.follow(storage, await options.head());
  const fault = storage.exclusive ? null : sharedFault(config);
  if (fault !== null) throw new VaultError(fault);
  // New key of an interrupted rotation. Its file has not replaced the file of the old key yet.
  const waiting = config.permits.key === null ? readSecret(files.next, log) : null;
  if (waiting !== null && publicHex(waiting) === directory.permitKeys().at(-1)?.public_key)
    moveIntoPlace(files.next, files.now);
  const privateKey = readPrivateKey(config.permits.key ?? readOrCreateSecret(files.now, log, generatePrivateKey), NAME);
  const publicKey = rawPublicKey(privateKey);
  if (options.isLogKey(publicKey))
    throw new VaultError(`the permit key is the key of the log: permits have one of their own, ${CREATE_KEY_HINT}`);
  const first = await pin(storage, toHex(publicKey));
  const keys = new PermitKeys(options, publicKey, createSigner(privateKey), first);
  if (!options.anyKey) keys.assertOwn();
  return keys;
}

function keyFiles({ data }: Pick<Config, "data">): { now: string; next: string } {
  return { now: join(data, FILE), next: join(data, NEXT_FILE) };
}

class PermitKeys implements PermitKeyService {
  private readonly options: PermitKeyOptions;
  /** This process's key, in hex. */
  private readonly own: string;
  private readonly kid: string;
  private readonly signer: ReturnType<typeof createSigner>;
  /** The store's first key, in hex. */
  private readonly first: string;
  private readonly imported = new Map<string, PublishedPermitKey>();
  private hasWarned = false;

  constructor(
    options: PermitKeyOptions,
    publicKey: Uint8Array,
    signer: ReturnType<typeof createSigner>,
    first: string,
  ) {
    this.options = options;
    this.own = toHex(publicKey);
    this.kid = permitKeyId(publicKey);
    this.signer = signer;
    this.first = first;
  }

  /**
   * Throws VaultError if the process's key does not belong to the store, or if permits of the key are no longer
   * accepted.
   */
  assertOwn(): void {
    const ownKey = this.ownKey();
    if (ownKey !== undefined && (ownKey.until ?? Infinity) > this.options.clock()) {
      if (ownKey.until !== null)
        this.options.log.warn(
          "the configured permit key was rotated; this process signs no permit that ends after this time",
          { until: toRfc3339(ownKey.until) },
        );
      return;
    }
    const reason =
      ownKey === undefined ? "is not the one of this store" : "was rotated and its permits are no longer accepted";
    throw new VaultError(
      `the key that signs permits ${reason}: give every process that shares the store the same, with permits.key or ASSENT_PERMIT_KEY, or as ${FILE} in the data folder. Where it is lost, \`assent keys rotate-permit\` makes another the store's`,
    );
  }

  assertSigns(expiresAt: number): void {
    const ownKey = this.ownKey();
    if (ownKey !== undefined && ownKey.until === null) return;
    if (!this.hasWarned)
      this.options.log.warn("the permit key of this process was rotated; start it again with the new one", {
        signs_until: ownKey === undefined ? null : toRfc3339(ownKey.until as number),
      });
    this.hasWarned = true;
    if (ownKey === undefined || (ownKey.until as number) < expiresAt)
      throw new Refusal(
        "PERMIT_KEY_RETIRED",
        "the permit key that this process uses was rotated and signs no more permits; the operator must restart the process with the new key",
      );
  }

  signs(hex: string): boolean {
    return hex === this.own || this.all().some((key) => toHex(key.publicKey) === hex);
  }

  async make(subject: PermitSubject, grant: PermitTerms): Promise<string> {
    this.assertSigns(grant.expires_at);
    return signPermit(subject, grant, this.kid, (message) => this.signer.sign(message));
  }

  check(permit: string, subject: PermitSubject, now: number): PermitFault | null {
    return checkPermit(permit, subject, this.valid(now), (...args) => this.options.vault.verify(...args));
  }

  async published(): Promise<readonly PublishedPermitKey[]> {
    await this.follow();
    return this.valid(this.options.clock());
  }

  async rotate(ledger: Ledger, { key, overlap }: PermitRotation): ReturnType<PermitKeyService["rotate"]> {
    const { config, log } = this.options;
    const files = keyFiles(config);
    await this.follow();
    const present = this.all()[0] as PublishedPermitKey;
    const isLost = present.kid !== this.kid;
    if (key === null && config.permits.key !== null)
      throw new VaultError(
        `permits.key names the key that signs permits: name the file of the new one, ${CREATE_KEY_HINT}`,
      );
    // If the data folder had no key, this start has already created a new key. Use that key to replace the lost key.
    const given = key ?? readOrCreateSecret(isLost ? files.now : files.next, log, generatePrivateKey);
    const next = publicHex(given);
    // If this process never had the old key, stop accepting its permits immediately. Only the store says that this key
    // signed permits, and anyone with write access to the store could have written that.
    const until = await this.record(ledger, next, isLost ? 0 : overlap);
    if (key === null && !isLost) moveIntoPlace(files.next, files.now);
    return { kid: permitKeyId(fromHex(next)), previous: present.kid, until };
  }

  /** Records the next key. Resolves to the expiry of the previous key. */
  private record(ledger: Ledger, next: string, overlapSeconds: number): Promise<number> {
    return ledger.transact(async (tx) => {
      const keys = this.all();
      if (keys.some(({ publicKey }) => toHex(publicKey) === next))
        throw new VaultError(`permits were signed with this key before: ${CREATE_KEY_HINT}`);
      if (this.options.isLogKey(fromHex(next))) throw new VaultError(`this is the key of the log: ${CREATE_KEY_HINT}`);
      const previous_until = tx.now + overlapSeconds * 1000;
      tx.record({
        type: "permit_key",
        v: 1,
        at: toRfc3339(tx.now),
        public_key: next,
        previous: toHex((keys[0] as PublishedPermitKey).publicKey),
        previous_until: toRfc3339(previous_until),
        by: null,
      });
      return previous_until;
    });
  }

  close(): Promise<void> {
    return this.signer.close();
  }

  private async follow(): Promise<void> {
    const { storage, directory } = this.options;
    await directory.follow(storage, await this.options.head());
  }

  /** Returns all keys: the key that signs, then the other keys from newest to oldest. */
  private all(): PublishedPermitKey[] {
    const rotations = this.options.directory.permitKeys();
    const keys = [this.importKey(rotations.at(-1)?.public_key ?? this.first, null)];
    for (const { previous, previous_until } of rotations.toReversed())
      keys.push(this.importKey(previous, previous_until));
    return keys;
  }

  private valid(now: number): PublishedPermitKey[] {
    return this.all().filter(({ until }) => until === null || until > now);
  }

  private ownKey(): PublishedPermitKey | undefined {
    return this.all().find((key) => key.kid === this.kid);
  }

  /** Always returns the same object for the same key, because the vault caches imported keys per object. */
  private importKey(hex: string, until: number | null): PublishedPermitKey {
    const name = `${hex} ${until}`;
    const importedKey = this.imported.get(name);
    if (importedKey !== undefined) return importedKey;
    const bytes = fromHex(hex);
    const key = { kid: permitKeyId(bytes), publicKey: bytes, until };
    this.imported.set(name, key);
    return key;
  }
}

/**
 * Returns an error message if a shared store has no configured key; else null. Processes on several machines have
 * separate data folders, so they need a configured key.
 */
function sharedFault({ ledger, permits }: PermitKeyOptions["config"]): string | null {
  if (ledger.key === null || permits.key !== null) return null;
  return `the key of the log is configured, and the one that signs permits is not, but processes that share a database also need that key: ${CREATE_KEY_HINT}, and give it to each of them with permits.key or ASSENT_PERMIT_KEY`;
}

function publicHex(pem: string): string {
  return toHex(rawPublicKey(readPrivateKey(pem, NAME)));
}

/**
 * Returns the store's first permit key. Pins this process's key if the store has no permit key. Checks again under the
 * lock, because several processes can start on the same empty store.
 */
async function pin(storage: Storage, ownDigest: string): Promise<string> {
  const pinned =
    (await storage.meta(PIN_NAME)) ??
    (await storage.write(async (tx) => {
      const stored = await tx.meta(PIN_NAME);
      if (stored === null) await tx.putMeta(PIN_NAME, ownDigest);
      return stored ?? ownDigest;
    }));
  if (!/^[0-9a-f]{64}$/.test(pinned))
    throw new StorageError(
      "corrupt",
      "the permit key that the store was started with cannot be read; run assent audit",
    );
  return pinned;
}
