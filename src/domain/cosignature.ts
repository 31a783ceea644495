/** C2SP tlog-cosignature, the Ed25519 kind: a witness says that it saw a checkpoint, consistent with all it saw before, at a time. */
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

/** Signature type of timestamped Ed25519 cosignatures. */
const COSIGNATURE = 0x04;
/** Eight bytes of time and 64 of signature. */
const SIGNATURE_BYTES = 72;

/** Verifier key of a witness, to be pinned by those who trust it. */
export function formatWitnessVkey(name: string, publicKey: Uint8Array): string {
  return formatVkey(name, publicKey, COSIGNATURE);
}

/** Throws NoteError("bad_key"). */
export function parseWitnessVkey(vkey: string): ReturnType<typeof parseVkey> {
  return parseVkey(vkey, COSIGNATURE);
}

/** What is signed: the header, the time, and the whole text of the checkpoint. */
function cosignedMessage(text: string, seconds: number): Uint8Array {
  return utf8(`cosignature/v1\ntime ${seconds}\n${text}`);
}

/**
 * A signature line, with its newline, for a checkpoint's text.
 * @param seconds since the epoch
 */
export function formatCosignature(text: string, seconds: number, signer: NoteSigner): string {
  const time = new Uint8Array(8);
  new DataView(time.buffer).setBigUint64(0, BigInt(seconds));
  const id = computeKeyId(signer.name, COSIGNATURE, signer.publicKey);
  return `${SIGNATURE_PREFIX}${signer.name} ${toBase64(concatBytes(id, time, signer.sign(cosignedMessage(text, seconds))))}\n`;
}

export interface Cosignature {
  /** Of the witness. */
  name: string;
  /** When the witness signed, by its own clock. Seconds since the epoch. */
  seconds: number;
}

/**
 * Which of these witnesses cosigned the note. Signatures by others are passed over; a known witness's that does not
 * verify rejects the note. Throws NoteError.
 */
export function verifyCosignatures(note: string, vkeys: readonly string[], verify: VerifySignature): Cosignature[] {
  const { text, signatures } = readNote(note);
  const witnesses = vkeys.map(parseWitnessVkey);
  const cosignatures: Cosignature[] = [];
  for (const { name, id, signature } of signatures) {
    const witness = witnesses.find((one) => one.name === name && equalBytes(one.id, id));
    if (witness === undefined) continue;
    const time = signature.length === SIGNATURE_BYTES ? readTime(signature) : null;
    if (time === null || !verify(witness.publicKey, cosignedMessage(text, time), signature.slice(8)))
      throw new NoteError("bad_signature", `the cosignature of ${name} does not fit the checkpoint`);
    if (!cosignatures.some((one) => one.name === name)) cosignatures.push({ name, seconds: time });
  }
  return cosignatures;
}

/** Null where it is no time that a number holds. */
function readTime(signature: Uint8Array): number | null {
  const time = new DataView(signature.buffer, signature.byteOffset, 8).getBigUint64(0);
  return time <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(time) : null;
}
