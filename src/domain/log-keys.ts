/**
 * The sequence of a log's keys. The last `log_key` entry among the first N entries sets the key that signs a checkpoint
 * of size N. Without a `log_key` entry, the first key signs. A client that pinned an earlier key can verify the
 * `log_key` entries, because each contains a handover that the replaced key signed.
 */
import {
  formatCheckpoint,
  NoteError,
  openCheckpoint,
  parseCheckpoint,
  readNote,
  signNote,
  type Checkpoint,
  type NoteSigner,
  type VerifySignature,
} from "./checkpoint.ts";
import type { LogKeyEntry } from "./entries.ts";
import { fromBase64, fromHex } from "./hash.ts";
import { hashLeaf, verifyInclusion } from "./merkle.ts";
import { parseRfc3339 } from "./time.ts";

/** A change of the log's key. */
export interface LogKeyChange {
  /** Sequence number of the entry that records the change. */
  seq: number;
  vkey: string;
  previous: string;
  /** End of the overlap in which the previous key signs in addition to the new key. Milliseconds. */
  previous_until: number;
}

export interface LogKeys {
  first: string;
  /** All changes, in order of `seq`. */
  changes: readonly LogKeyChange[];
}

/**
 * Returns the key that signs new checkpoints.
 * @example
 * currentVkey(keys); // "log.example+1a2b3c4d+…"
 */
export function currentVkey({ first, changes }: LogKeys): string {
  return changes.at(-1)?.vkey ?? first;
}

/** Returns the key that signs a checkpoint of this size. */
export function vkeyAtSize({ first, changes }: LogKeys, size: number): string {
  return changes.findLast(({ seq }) => seq < size)?.vkey ?? first;
}

/**
 * Returns all keys, from the first to the current one.
 * @example
 * listVkeys({ first, changes: [] }); // [first]
 */
export function listVkeys({ first, changes }: LogKeys): string[] {
  return [first, ...changes.map(({ vkey }) => vkey)];
}

/**
 * Verifies a note of this log with the key for the checkpoint's size, and returns the checkpoint. Throws NoteError.
 * @example
 * openLogCheckpoint(note, keys, verify).size;
 */
export function openLogCheckpoint(note: string, keys: LogKeys, verify: VerifySignature): Checkpoint {
  const { size } = parseCheckpoint(readNote(note).text);
  return openCheckpoint(note, vkeyAtSize(keys, size), verify);
}

const handoverLine = (previous: string, vkey: string): string => `log-key ${previous} ${vkey}`;

/**
 * Returns the `handover` of a `log_key` entry, signed by both keys. `checkpoint` is the checkpoint of the log before
 * the entry.
 */
export function signHandover(
  checkpoint: Checkpoint,
  previous: { vkey: string; signer: NoteSigner },
  next: { vkey: string; signer: NoteSigner },
): string {
  const text = `${formatCheckpoint(checkpoint)}${handoverLine(previous.vkey, next.vkey)}\n`;
  return signNote(text, previous.signer, next.signer);
}

/**
 * Verifies the handover of a `log_key` entry, and returns its checkpoint. Throws NoteError unless both keys signed it,
 * it names both keys, and its checkpoint does not include the entry.
 */
export function openHandover(
  { seq, vkey, previous, handover }: Pick<LogKeyEntry, "vkey" | "previous" | "handover"> & { seq: number },
  verify: VerifySignature,
): Checkpoint {
  const checkpoint = openCheckpoint(handover, previous, verify);
  openCheckpoint(handover, vkey, verify);
  const lines = readNote(handover).text.split("\n").slice(3, -1);
  if (lines.length !== 1 || lines[0] !== handoverLine(previous, vkey))
    throw new NoteError("bad_checkpoint", `the signed text does not say that the key ${vkey} follows ${previous}`);
  if (checkpoint.size > seq)
    throw new NoteError(
      "bad_checkpoint",
      `the entry is at ${seq}, and was handed over with ${checkpoint.size} entries`,
    );
  return checkpoint;
}

/**
 * Returns the keys with the entry's key appended. Throws NoteError unless the entry replaces the current key with a new
 * key and its handover is valid.
 * @example
 * keys = appendLogKey(keys, entry, verify);
 */
export function appendLogKey(keys: LogKeys, entry: LogKeyEntry & { seq: number }, verify: VerifySignature): LogKeys {
  const { seq, vkey, previous } = entry;
  const previous_until = parseRfc3339(entry.previous_until);
  if (previous !== currentVkey(keys))
    throw new NoteError("unknown_key", `entry ${seq} ends the key ${previous}, and the log's is ${currentVkey(keys)}`);
  if (listVkeys(keys).includes(vkey))
    throw new NoteError("bad_key", `entry ${seq} names ${vkey}, which was the log's before`);
  if (previous_until === null)
    throw new NoteError("malformed", `entry ${seq} does not say until when the key before signs`);
  openHandover(entry, verify);
  return { ...keys, changes: [...keys.changes, { seq, vkey, previous, previous_until }] };
}

/** A `log_key` entry with its inclusion proof. */
export interface LogKeyProof {
  /** The entry's bytes in base64. */
  leaf: string;
  index: number;
  /** The inclusion proof in hex, from the leaf to the root. */
  path: string[];
}

/**
 * Verifies a note for a client that pinned one of the log's keys. `proofs` contains the `log_key` entries that the
 * checkpoint covers, in order. Ignores entries before the pinned key. Throws NoteError, RangeError, SyntaxError or
 * TypeError if anything is invalid.
 */
export function openCheckpointFromPin(
  note: string,
  pin: string,
  proofs: readonly LogKeyProof[],
  verify: VerifySignature,
): { checkpoint: Checkpoint; keys: LogKeys } {
  let keys: LogKeys = { first: pin, changes: [] };
  const followed: { proof: LogKeyProof; leafHash: Uint8Array }[] = [];
  for (const proof of proofs) {
    const bytes = fromBase64(proof.leaf);
    const entry = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)) as LogKeyEntry & { seq: number };
    if (entry.type !== "log_key" || entry.seq !== proof.index)
      throw new NoteError("malformed", `the entry at ${proof.index} is not a change of the log's key`);
    if (keys.changes.length === 0 && entry.previous !== pin) continue;
    keys = appendLogKey(keys, entry, verify);
    followed.push({ proof, leafHash: hashLeaf(bytes) });
  }
  const checkpoint = openCheckpoint(note, currentVkey(keys), verify);
  const { size, root } = checkpoint;
  for (const { proof, leafHash } of followed) {
    const { index } = proof;
    if (!verifyInclusion({ index, size, leafHash, path: proof.path.map(fromHex), root }))
      throw new NoteError("malformed", `the change of the log's key at ${index} is not in the log that was signed`);
  }
  return { checkpoint, keys };
}
