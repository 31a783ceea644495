/**
 * C2SP tlog-cosignature with Ed25519. A cosignature states when a witness verified the checkpoint. It also states that
 * the checkpoint is consistent with every checkpoint that the witness cosigned earlier.
 */
import {
  SIGNATURE_PREFIX,
  formatVkey,
  computeKeyId,
  NoteError,
  parseVkey,
  readNote,
  type NoteSigner,
  type VerifySignature,
} from "./checkpoint.ts";
import { concatBytes, equalBytes, toBase64, utf8 } from "./hash.ts";

/** Signature type of Ed25519 cosignatures with a time. */
const COSIGNATURE = 0x04;
/** Length of a signature: an 8-byte time and a 64-byte Ed25519 signature. */
const SIGNATURE_BYTES = 72;

/** Returns the verifier key of a witness. Clients that trust the witness pin this key. */
export function formatCosignerVkey(name: string, publicKey: Uint8Array): string {
  return formatVkey(name, publicKey, COSIGNATURE);
}

/**
 * Parses the verifier key of a witness. Throws NoteError("bad_key").
 *
 * @example
 * parseCosignerVkey("witness.example+0f2c6dd1+BN4V...").name; // "witness.example"
 */
export function parseCosignerVkey(vkey: string): ReturnType<typeof parseVkey> {
  return parseVkey(vkey, COSIGNATURE);
}

/** Returns the bytes to sign: the header, the time and the text of the checkpoint. */
function cosignedMessage(text: string, seconds: number): Uint8Array {
  return utf8(`cosignature/v1\ntime ${seconds}\n${text}`);
}

/**
 * Returns the cosignature line, with its newline, for a checkpoint's text.
 * @param seconds the time of the cosignature in seconds since the epoch
 */
export function formatCosignature(text: string, seconds: number, signer: NoteSigner): string {
  const time = new Uint8Array(8);
  new DataView(time.buffer).setBigUint64(0, BigInt(seconds));
  const id = computeKeyId(signer.name, COSIGNATURE, signer.publicKey);
  return `${SIGNATURE_PREFIX}${signer.name} ${toBase64(concatBytes(id, time, signer.sign(cosignedMessage(text, seconds))))}\n`;
}

interface Cosignature {
  /** The name of the witness. */
  name: string;
  /** Time of the cosignature, measured by the witness's clock. Seconds since the epoch. */
  seconds: number;
}

/**
 * Returns which of the given witnesses cosigned the note. Ignores other signatures. Throws NoteError if a given
 * witness's cosignature is invalid.
 * @example
 * verifyCosignatures(note, witnessKeys, verify).length;
 */
export function verifyCosignatures(note: string, vkeys: readonly string[], verify: VerifySignature): Cosignature[] {
  const { text, signatures } = readNote(note);
  const witnesses = vkeys.map(parseCosignerVkey);
  const cosignatures: Cosignature[] = [];
  for (const { name, id, signature } of signatures) {
    const witness = witnesses.find((candidate) => candidate.name === name && equalBytes(candidate.id, id));
    if (witness === undefined) continue;
    const time = signature.length === SIGNATURE_BYTES ? readTime(signature) : null;
    if (time === null || !verify(witness.publicKey, cosignedMessage(text, time), signature.slice(8)))
      throw new NoteError("bad_signature", `the cosignature of ${name} does not match the checkpoint`);
    if (!cosignatures.some((candidate) => candidate.name === name)) cosignatures.push({ name, seconds: time });
  }
  return cosignatures;
}

/** Returns the time of a cosignature in seconds; null if it does not fit in a safe integer. */
function readTime(signature: Uint8Array): number | null {
  const time = new DataView(signature.buffer, signature.byteOffset, 8).getBigUint64(0);
  return time <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(time) : null;
}
