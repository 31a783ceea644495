/**
 * Determines from the ledger which keys sign a checkpoint, so that a change of keys does not require a restart. A
 * process without the log's key does not sign or write, because it could not sign its own entries.
 */
import type { LogKeyView } from "../../contract/ledger.ts";
import { StorageError, type EntryRow, type StorageReader } from "../../contract/storage.ts";
import {
  NoteError,
  parseVkey,
  type NoteSigner,
  type VerifierKey,
  type VerifySignature,
} from "../../domain/checkpoint.ts";
import { decodeEntry, type LogKeyEntry } from "../../domain/entries.ts";
import { equalBytes, toBase64, toHex } from "../../domain/hash.ts";
import { currentVkey, vkeyAtSize, appendLogKey, type LogKeyProof, type LogKeys } from "../../domain/log-keys.ts";
import { hashLeaf } from "../../domain/merkle.ts";
import { readFollowedPages } from "../followed-pages.ts";
import type { ProofReader } from "../reader.ts";

export interface LogKeyBook {
  keys(): LogKeys;
  /**
   * Reads the key changes since the last call. `epoch` is the epoch of the head; the keys do not change within an
   * epoch. Rejects with StorageError.
   */
  follow(reader: Pick<StorageReader, "followedEntries">, epoch: number): Promise<void>;
  /** Applies entries that this process has committed. */
  applyEntries(rows: readonly EntryRow[]): void;
  /**
   * Returns the signers of a checkpoint of this size: the log's key, and predecessors that still cosign. Throws
   * StorageError if this process does not have the log's key.
   */
  signers(size: number): NoteSigner[];
  /** Throws StorageError if this process does not have the log's current key. */
  assertHeld(): void;
}

interface LogKeyBookOptions {
  /** The key with which the log started. */
  first: string;
  /** Returns the signer of a key; null if this process does not have the key. */
  signer(name: string, publicKey: Uint8Array): NoteSigner | null;
  verify: VerifySignature;
  clock(): number;
}

export function createLogKeyBook({ first, signer, verify, clock }: LogKeyBookOptions): LogKeyBook {
  let keys: LogKeys = { first, changes: [] };
  let followed = -1;
  const parsed = new Map<string, VerifierKey>();

  function signerOf(vkey: string): NoteSigner | null {
    const key = parsed.get(vkey) ?? parseVkey(vkey);
    parsed.set(vkey, key);
    return signer(key.name, key.publicKey);
  }

  function requireSigner(vkey: string): NoteSigner {
    const signerOfKey = signerOf(vkey);
    if (signerOfKey !== null) return signerOfKey;
    throw new StorageError(
      "unavailable",
      `the log's key is ${vkey}, and this process does not have it: it signs and writes nothing. Give it with ledger.key or ledger.next_key (ASSENT_LOG_KEY, ASSENT_LOG_NEXT_KEY)`,
    );
  }

  return {
    keys: () => keys,
    async follow(reader, epoch) {
      if (epoch <= followed) return;
      const read = await readLogKeys(reader, keys, verify);
      if (read.changes.length > keys.changes.length) keys = read;
      followed = Math.max(followed, epoch);
    },
    applyEntries(rows) {
      for (const row of rows) if (row.type === "log_key") keys = applyEntry(keys, row, verify);
    },
    signers(size) {
      const signers = [requireSigner(vkeyAtSize(keys, size))];
      const now = clock();
      for (const { seq, previous, previous_until } of keys.changes) {
        const along = seq < size && previous_until > now ? signerOf(previous) : null;
        if (along !== null) signers.push(along);
      }
      return signers;
    },
    assertHeld: () => void requireSigner(currentVkey(keys)),
  };
}

/**
 * Applies the key changes that the store has recorded. Rejects with StorageError "corrupt" for a change that the previous key
 * did not sign.
 */
export async function readLogKeys(
  reader: Pick<StorageReader, "followedEntries">,
  from: LogKeys,
  verify: VerifySignature,
): Promise<LogKeys> {
  let keys = from;
  for await (const rows of readFollowedPages(reader, (keys.changes.at(-1)?.seq ?? -1) + 1))
    for (const row of rows) if (row.type === "log_key") keys = applyEntry(keys, row, verify);
  return keys;
}

function applyEntry(keys: LogKeys, { seq, bytes, leaf_hash }: EntryRow, verify: VerifySignature): LogKeys {
  if ((keys.changes.at(-1)?.seq ?? -1) >= seq) return keys;
  try {
    if (!equalBytes(hashLeaf(bytes), leaf_hash)) throw new NoteError("malformed", "its bytes were changed");
    return appendLogKey(keys, { ...decodeEntry<LogKeyEntry>(bytes), seq }, verify);
  } catch (error) {
    throw new StorageError(
      "corrupt",
      `entry ${seq} changes the log's key without a valid signature of the previous key: ${error instanceof Error ? error.message : String(error)}; run assent audit`,
      { cause: error },
    );
  }
}

/** Returns the key changes among the first `size` entries, with their inclusion proofs. Rejects with StorageError. */
export async function proveLogKeys(
  { changes }: LogKeys,
  size: number,
  reader: Pick<StorageReader, "entries">,
  proofs: Pick<ProofReader, "inclusion">,
): Promise<LogKeyProof[]> {
  const proven: LogKeyProof[] = [];
  for (const { seq } of changes) {
    if (seq >= size) break;
    const [row] = await reader.entries(seq, seq + 1);
    if (row === undefined) throw new StorageError("corrupt", `entry ${seq} is missing; run assent audit`);
    proven.push({ leaf: toBase64(row.bytes), index: seq, path: (await proofs.inclusion(seq, size)).map(toHex) });
  }
  return proven;
}

/** Returns every key of the log, the current key first. */
export function viewLogKeys({ first, changes }: LogKeys): LogKeyView[] {
  return [{ seq: null, vkey: first }, ...changes]
    .map(({ seq, vkey }, i) => ({ vkey, since: seq, until: changes[i]?.previous_until ?? null }))
    .toReversed();
}
