/** C2SP signed notes and tlog checkpoints. All base64 is standard, padded and canonical. */
import { concatBytes, equalBytes, fromBase64, fromHex, sha256, toBase64, toHex, utf8 } from "./hash.ts";
import { isSmallOrderKey } from "./small-order-keys.ts";

export type VerifySignature = (publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array) => boolean;

export type NoteErrorReason =
  | "malformed"
  | "bad_key"
  | "unknown_key"
  | "bad_signature"
  | "bad_checkpoint"
  | "wrong_origin";

export class NoteError extends Error {
  readonly reason: NoteErrorReason;
  constructor(reason: NoteErrorReason, message: string) {
    super(message);
    this.name = "NoteError";
    this.reason = reason;
  }
}

/** Signature type of an Ed25519 note signature. */
const ED25519 = 0x01;
/** The em dash and space that start a signature line. */
export const SIGNATURE_PREFIX = "\u2014 ";

/**
 * Maximum number of signature lines. A note with more is rejected before any signature is verified, as in the Go
 * implementation.
 */
const MAX_SIGNATURES = 100;

/**
 * Returns true if `name` is valid in a note: it is not empty and contains no white space, `+`, control characters or
 * lone surrogates.
 */
export function isNoteName(name: string): boolean {
  return name !== "" && !/[\s+\p{Cc}\p{Cs}]/u.test(name);
}

/** Returns the key id: the first four bytes of SHA-256(name ‖ 0x0A ‖ type ‖ public key). */
export function computeKeyId(name: string, type: number, publicKey: Uint8Array): Uint8Array {
  return sha256(concatBytes(utf8(name), Uint8Array.of(0x0a, type), publicKey)).slice(0, 4);
}

/**
 * Returns the verifier key `<name>+<hex key id>+<base64 of type ‖ key>`. Throws NoteError("bad_key") for an invalid
 * name.
 */
export function formatVkey(name: string, publicKey: Uint8Array, type = ED25519): string {
  if (!isNoteName(name))
    throw new NoteError("bad_key", `"${name}" cannot name a key: it must have no spaces and no "+"`);
  return `${name}+${toHex(computeKeyId(name, type, publicKey))}+${toBase64(concatBytes(Uint8Array.of(type), publicKey))}`;
}

export interface VerifierKey {
  name: string;
  id: Uint8Array;
  publicKey: Uint8Array;
}

/**
 * Parses a verifier key. Throws NoteError("bad_key") unless it is an Ed25519 key of this signature type and its id
 * matches.
 */
export function parseVkey(text: string, type = ED25519): VerifierKey {
  const bad = (reason: string): never => {
    throw new NoteError("bad_key", `"${text.slice(0, 200)}" is not a verifier key: ${reason}`);
  };
  const [name, hex, ...rest] = text.split("+");
  const encoded = rest.join("+");
  if (name === undefined || hex === undefined || !isNoteName(name) || !/^[0-9a-f]{8}$/.test(hex))
    return bad("expected <name>+<8 hex digits>+<base64>");
  let key: Uint8Array;
  try {
    key = fromBase64(encoded);
  } catch {
    return bad("its key is not base64");
  }
  if (key.length !== 33 || key[0] !== type)
    return bad(type === ED25519 ? "its key is not Ed25519" : `its key is not of the signature type ${type}`);
  const publicKey = key.slice(1);
  if (isSmallOrderKey(publicKey)) return bad("anyone can sign for its key");
  const id = fromHex(hex);
  if (!equalBytes(id, computeKeyId(name, type, publicKey))) return bad("its id does not belong to its name and key");
  return { name, id, publicKey };
}

export interface NoteSigner {
  name: string;
  publicKey: Uint8Array;
  sign(message: Uint8Array): Uint8Array;
}

/**
 * Returns `text` with one signature line for each signer. Throws NoteError if a signer's name is invalid, or unless
 * `text` ends in a newline and has no control characters except newlines.
 */
export function signNote(text: string, ...signers: readonly NoteSigner[]): string {
  if (!text.endsWith("\n") || !isNoteText(text))
    throw new NoteError("malformed", "a note's text ends in a newline and has no control characters");
  const lines = signers.map((signer) => {
    if (!isNoteName(signer.name)) throw new NoteError("bad_key", `"${signer.name}" cannot name a key`);
    const signature = concatBytes(computeKeyId(signer.name, ED25519, signer.publicKey), signer.sign(utf8(text)));
    return `${SIGNATURE_PREFIX}${signer.name} ${toBase64(signature)}\n`;
  });
  return `${text}\n${lines.join("")}`;
}

/**
 * Verifies a note and returns its text. Requires the signature of at least one of `vkeys`. Ignores signatures by other
 * keys. Throws NoteError if none of `vkeys` signed it, if a signature by one of them is invalid, or if the note or a
 * key is malformed.
 */
export function openNote(note: string, vkeys: readonly string[], verify: VerifySignature): string {
  const { text, signatures } = readNote(note);
  const keys = vkeys.map((vkey) => parseVkey(vkey));
  let verified = false;
  for (const { name, id, signature } of signatures) {
    const key = keys.find((k) => k.name === name && equalBytes(k.id, id));
    if (key === undefined) continue;
    if (signature.length !== 64 || !verify(key.publicKey, utf8(text), signature)) {
      throw new NoteError("bad_signature", `the signature of ${name} does not match the note`);
    }
    verified = true;
  }
  if (!verified)
    throw new NoteError(
      "unknown_key",
      `the note is not signed by ${keys.map((k) => k.name).join(" or ") || "any given key"} with the given key`,
    );
  return text;
}

interface NoteSignature {
  name: string;
  /** Key id. Four bytes. */
  id: Uint8Array;
  signature: Uint8Array;
}

/**
 * Splits a note into its text, including the last newline, and its signatures. Does not verify the signatures. Throws
 * NoteError.
 */
export function readNote(note: string): { text: string; signatures: NoteSignature[] } {
  const split = note.lastIndexOf("\n\n");
  if (split < 0 || !note.endsWith("\n") || !isNoteText(note))
    throw new NoteError("malformed", "the note has no signatures after a blank line, or has control characters");
  const lines = note.slice(split + 2, -1).split("\n");
  if (lines.length > MAX_SIGNATURES)
    throw new NoteError("malformed", `the note has more than ${MAX_SIGNATURES} signatures`);
  return { text: note.slice(0, split + 1), signatures: lines.map(readSignature) };
}

function readSignature(line: string): NoteSignature {
  const [name, encoded, ...rest] = line.startsWith(SIGNATURE_PREFIX)
    ? line.slice(SIGNATURE_PREFIX.length).split(" ")
    : [];
  if (name === undefined || encoded === undefined || rest.length > 0 || !isNoteName(name)) {
    throw new NoteError("malformed", "a line after the note's last blank line is not a signature");
  }
  let bytes: Uint8Array;
  try {
    bytes = fromBase64(encoded);
  } catch {
    throw new NoteError("malformed", `the signature of ${name} is not canonical base64`);
  }
  if (bytes.length < 5) throw new NoteError("malformed", `the signature of ${name} is too short`);
  return { name, id: bytes.slice(0, 4), signature: bytes.slice(4) };
}

/** Returns true for valid Unicode without control characters below U+0020, except newlines. */
function isNoteText(text: string): boolean {
  if (/\p{Cs}/u.test(text)) return false;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c < 0x20 && c !== 0x0a) return false;
  }
  return true;
}

export interface Checkpoint {
  origin: string;
  size: number;
  /** Root hash of the tree. 32 bytes. */
  root: Uint8Array;
}

export function formatCheckpoint({ origin, size, root }: Checkpoint): string {
  if (!isNoteName(origin) || !Number.isSafeInteger(size) || size < 0 || root.length !== 32)
    throw new NoteError("bad_checkpoint", "a checkpoint has an origin, a size and a root of 32 bytes");
  return `${origin}\n${size}\n${toBase64(root)}\n`;
}

/**
 * Parses a checkpoint. Ignores extension lines after the root, as the specification requires. Throws
 * NoteError("bad_checkpoint").
 */
export function parseCheckpoint(text: string): Checkpoint {
  const [origin, decimal, encoded, ...rest] = text.split("\n");
  const bad = (reason: string): never => {
    throw new NoteError("bad_checkpoint", `the checkpoint cannot be read: ${reason}`);
  };
  if (
    origin === undefined ||
    decimal === undefined ||
    encoded === undefined ||
    rest.at(-1) !== "" ||
    rest.slice(0, -1).includes("")
  )
    return bad("expected origin, size and root, a line each");
  if (origin === "") return bad("its origin is empty");
  if (!/^(?:0|[1-9]\d{0,15})$/.test(decimal) || !Number.isSafeInteger(Number(decimal)))
    return bad(`its size "${decimal}" is not a plain decimal number`);
  let root: Uint8Array;
  try {
    root = fromBase64(encoded);
  } catch {
    return bad("its root is not canonical base64");
  }
  if (root.length !== 32) return bad("its root is not 32 bytes");
  return { origin, size: Number(decimal), root };
}

export function signCheckpoint(checkpoint: Checkpoint, ...signers: readonly NoteSigner[]): string {
  return signNote(formatCheckpoint(checkpoint), ...signers);
}

/**
 * Verifies a note that `vkey` signed, and returns its checkpoint. The key's name must equal the origin. Throws
 * NoteError.
 */
export function openCheckpoint(note: string, vkey: string, verify: VerifySignature): Checkpoint {
  const checkpoint = parseCheckpoint(openNote(note, [vkey], verify));
  const { name } = parseVkey(vkey);
  if (checkpoint.origin !== name)
    throw new NoteError("wrong_origin", `the checkpoint is of the log "${checkpoint.origin}", the key is of "${name}"`);
  return checkpoint;
}
