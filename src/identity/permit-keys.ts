/**
 * The Ed25519 key that signs permits, and those before it whose permits still hold. The first is pinned in the store;
 * each later one stands in the ledger, with the end of the one before. A process follows the ledger, and so all that
 * share a store take the same keys, whichever of them it signs with.
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
import { checkPermit, signPermit, permitKeyId } from "../domain/permit.ts";
import { toRfc3339 } from "../domain/time.ts";
import type { Directory } from "./directory.ts";
import {
  CREATE_KEY_HINT,
  generatePrivateKey,
  replaceFile,
  rawPublicKey,
  readOrCreate,
  readPrivateKey,
  readSecret,
  VaultError,
} from "./key-files.ts";
import { createSigner } from "./signer.ts";

const PIN = "permit_key";
const FILE = "permit-key.pem";
/** Holds a new key until the ledger has it. */
const NEXT_FILE = "permit-key.next.pem";
/** What the data folder holds of them. */
export const PERMIT_KEY_FILES = [FILE, NEXT_FILE] as const;

const NAME = "permit key";

export interface PermitRotation {
  /** PEM of the new key, or its file's path; null makes one in the data folder. */
  key: string | null;
  /** Seconds from now for which permits of the present key are taken, and may be signed; 0 where this process does not have it. */
  overlap: number;
}

export interface PermitKeyService extends Permits {
  /** Records the next key. Rejects with VaultError, having recorded nothing, for one that cannot be it. */
  rotate(ledger: Ledger, rotation: PermitRotation): Promise<{ kid: string; previous: string; until: number }>;
  /** Whether permits are signed with this key, in hex, or were. */
  signs(publicKey: string): boolean;
  close(): Promise<void>;
}

export interface PermitKeyOptions {
  config: Pick<Config, "data" | "ledger" | "permits">;
  storage: Storage;
  directory: Directory;
  vault: Pick<Vault, "verify">;
  /** Whether the log is signed with it, or was. */
  isLogKey(publicKey: Uint8Array): boolean;
  head(): Promise<LedgerHead>;
  clock(): number;
  log: Logger;
  /** Starts, too, with another key than the store's: to rotate one that was lost. */
  anyKey: boolean;
}

/** Throws VaultError for a key that is missing or cannot be used, and where it is not the one of this store. */
export async function openPermitKeys(options: PermitKeyOptions): Promise<PermitKeyService> {
  const { config, storage, directory, vault, clock, log } = options;
  const files = { now: join(config.data, FILE), next: join(config.data, NEXT_FILE) };
  const follow = async (): Promise<void> => directory.follow(storage, (await options.head()).epoch);
  await follow();
  const first = storage.exclusive ? null : sharedFault(config);
  if (first !== null) throw new VaultError(first);
  // The key of a rotation that was interrupted before its file replaced the old one.
  const waiting = config.permits.key === null ? readSecret(files.next, log) : null;
  if (waiting !== null && publicHex(waiting) === directory.permitKeys().at(-1)?.public_key)
    replaceFile(files.next, files.now);
  const privateKey = readPrivateKey(config.permits.key ?? readOrCreate(files.now, log, generatePrivateKey), NAME);
  const publicKey = rawPublicKey(privateKey);
  const own = toHex(publicKey);
  if (options.isLogKey(publicKey))
    throw new VaultError(`the permit key is the key of the log: permits have one of their own, ${CREATE_KEY_HINT}`);
  const kid = permitKeyId(publicKey);
  const pinned = await pin(storage, own);
  const signer = createSigner(privateKey);
  const imported = new Map<string, PublishedPermitKey>();

  /** The same object each time: the vault keeps what it imported by it. */
  function keyOf(hex: string, until: number | null): PublishedPermitKey {
    const name = `${hex} ${until}`;
    const kept = imported.get(name);
    if (kept !== undefined) return kept;
    const bytes = fromHex(hex);
    const key = { kid: permitKeyId(bytes), publicKey: bytes, until };
    imported.set(name, key);
    return key;
  }

  /** Every key there was, the one that signs first, then the latest. */
  function all(): PublishedPermitKey[] {
    const rotations = directory.permitKeys();
    const keys = [keyOf(rotations.at(-1)?.public_key ?? pinned, null)];
    for (const { previous, previous_until } of rotations.toReversed()) keys.push(keyOf(previous, previous_until));
    return keys;
  }

  const valid = (now: number): PublishedPermitKey[] => all().filter(({ until }) => until === null || until > now);

  function assertOwn(): void {
    const mine = all().find((key) => key.kid === kid);
    if (mine !== undefined && (mine.until ?? Infinity) > clock()) {
      if (mine.until !== null)
        log.warn("the configured permit key was rotated; this process signs no permit that ends after this time", {
          until: toRfc3339(mine.until),
        });
      return;
    }
    const why = mine === undefined ? "is not the one of this store" : "was rotated and is no longer taken";
    throw new VaultError(
      `the key that signs permits ${why}: give every process that shares the store the same, with permits.key or ASSENT_PERMIT_KEY, or as ${FILE} in the data folder. Where it is lost, \`assent keys rotate-permit\` makes another the store's`,
    );
  }

  if (!options.anyKey) assertOwn();

  let warned = false;
  function assertSigns(expiresAt: number): void {
    const mine = all().find((key) => key.kid === kid);
    if (mine !== undefined && mine.until === null) return;
    if (!warned)
      log.warn("the permit key of this process was rotated; start it again with the new one", {
        signs_until: mine === undefined ? null : toRfc3339(mine.until as number),
      });
    warned = true;
    if (mine === undefined || (mine.until as number) < expiresAt)
      throw new Refusal(
        "PERMIT_KEY_RETIRED",
        "the permit key that this process was started with was rotated, and signs no more; the operator has to start it again with the new one",
      );
  }

  return {
    assertSigns,
    signs: (hex) => hex === own || all().some((key) => toHex(key.publicKey) === hex),
    async make(subject, grant) {
      assertSigns(grant.expires_at);
      return signPermit(subject, grant, kid, (message) => signer.sign(message));
    },
    check: (permit, subject, now) => checkPermit(permit, subject, now, valid(now), (...args) => vault.verify(...args)),
    async published() {
      await follow();
      return valid(clock());
    },
    async rotate(ledger, { key, overlap }) {
      await follow();
      const present = all()[0] as PublishedPermitKey;
      const lost = present.kid !== kid;
      if (key === null && config.permits.key !== null)
        throw new VaultError(
          `permits.key names the key that signs permits: name the file of the new one, ${CREATE_KEY_HINT}`,
        );
      // Where the data folder's was lost, the start has just made the next.
      const given = key ?? readOrCreate(lost ? files.now : files.next, log, generatePrivateKey);
      const next = publicHex(given);
      const until = await ledger.transact(async (tx) => {
        const keys = all();
        if (keys.some(({ publicKey }) => toHex(publicKey) === next))
          throw new VaultError(`permits were signed with this key before: ${CREATE_KEY_HINT}`);
        if (options.isLogKey(fromHex(next))) throw new VaultError(`this is the key of the log: ${CREATE_KEY_HINT}`);
        // Of a key that this process never had only the store says that it was ours, and whoever writes to it can.
        const previous_until = tx.now + (lost ? 0 : overlap * 1000);
        tx.record({
          type: "permit_key",
          v: 1,
          at: toRfc3339(tx.now),
          public_key: next,
          previous: toHex((keys[0] as PublishedPermitKey).publicKey),
          previous_until: toRfc3339(previous_until),
          by: null,
        });
        tx.bumpEpoch();
        return previous_until;
      });
      if (key === null && !lost) replaceFile(files.next, files.now);
      return { kid: permitKeyId(fromHex(next)), previous: present.kid, until };
    },
    close: () => signer.close(),
  };
}

/** Processes of one database on several machines each have a data folder: what the log's key says of the first holds here. */
function sharedFault({ ledger, permits }: PermitKeyOptions["config"]): string | null {
  if (ledger.key === null || permits.key !== null) return null;
  return `the key of the log is configured, and the one that signs permits is not, which processes that share a database need, too: ${CREATE_KEY_HINT}, and give it to each of them with permits.key or ASSENT_PERMIT_KEY`;
}

function publicHex(given: string): string {
  return toHex(rawPublicKey(readPrivateKey(given, NAME)));
}

/** The store's first permit key. Looked at again under the lock: several processes may start on one empty store. */
async function pin(storage: Storage, own: string): Promise<string> {
  const pinned =
    (await storage.meta(PIN)) ??
    (await storage.write(async (tx) => {
      const stored = await tx.meta(PIN);
      if (stored === null) await tx.putMeta(PIN, own);
      return stored ?? own;
    }));
  if (!/^[0-9a-f]{64}$/.test(pinned))
    throw new StorageError(
      "corrupt",
      "the permit key that the store was started with cannot be read; run assent audit",
    );
  return pinned;
}
