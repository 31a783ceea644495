/**
 * C2SP tlog-proof: an inclusion proof with its checkpoint. The proof does not contain the leaf; the verifier supplies
 * it.
 */
import type { Checkpoint, VerifySignature } from "./checkpoint.ts";
import { equalBytes, fromBase64, toBase64 } from "./hash.ts";
import { openCheckpointFromPin, type LogKeyProof, type LogKeys } from "./log-keys.ts";
import { rootFromInclusion } from "./merkle.ts";

const HEADER = "c2sp.org/tlog-proof@v1";

interface TlogProof {
  index: number;
  path: Uint8Array[];
  /** The checkpoint as a signed note. */
  checkpoint: string;
  /** Extra data, which is not authenticated. */
  extra: Uint8Array | null;
}

export class ProofError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "ProofError";
  }
}

export function formatTlogProof(proof: {
  index: number;
  path: readonly Uint8Array[];
  checkpoint: string;
  extra?: Uint8Array | null;
}): string {
  const extra = proof.extra === undefined || proof.extra === null ? [] : [`extra ${toBase64(proof.extra)}`];
  return [HEADER, ...extra, `index ${proof.index}`, ...proof.path.map(toBase64), "", proof.checkpoint].join("\n");
}

/** Parses a proof. Throws ProofError. */
export function parseTlogProof(text: string): TlogProof {
  const split = text.indexOf("\n\n");
  if (split < 0) throw new ProofError("the proof has no blank line before its checkpoint");
  const lines = text.slice(0, split).split("\n");
  if (lines.shift() !== HEADER) throw new ProofError(`the proof does not start with "${HEADER}"`);
  const extra = lines[0]?.startsWith("extra ") ? decode(lines.shift()?.slice("extra ".length) as string) : null;
  const match = /^index (0|[1-9]\d{0,15})$/.exec(lines.shift() ?? "");
  if (match === null || !Number.isSafeInteger(Number(match[1])))
    throw new ProofError('the proof has no line "index <number>"');
  const path = lines.map(decode);
  if (path.length > 63 || path.some((hash) => hash.length !== 32))
    throw new ProofError("the proof's path is not of up to 63 hashes of 32 bytes");
  return { index: Number(match[1]), path, checkpoint: text.slice(split + 2), extra };
}

function decode(line: string): Uint8Array {
  try {
    return fromBase64(line);
  } catch {
    throw new ProofError(`"${line.slice(0, 80)}" is not canonical base64`);
  }
}

/**
 * Returns the log keys in `extra`, which is not authenticated. Returns [] if `extra` contains something else, such as
 * in proofs of other logs.
 */
function logKeysIn(extra: Uint8Array | null): readonly LogKeyProof[] {
  try {
    const { log_keys } = JSON.parse(new TextDecoder().decode(extra ?? new Uint8Array())) as { log_keys: LogKeyProof[] };
    return Array.isArray(log_keys) ? log_keys : [];
  } catch {
    return [];
  }
}

/**
 * Verifies a proof. Returns the index, the checkpoint, and the log's keys from the pinned key to the key that signed
 * the checkpoint. Throws ProofError, NoteError, RangeError, SyntaxError or TypeError.
 */
export function verifyTlogProof(
  text: string,
  leafHash: Uint8Array,
  vkey: string,
  verify: VerifySignature,
): { index: number; checkpoint: Checkpoint; keys: LogKeys } {
  const proof = parseTlogProof(text);
  const { checkpoint, keys } = openCheckpointFromPin(proof.checkpoint, vkey, logKeysIn(proof.extra), verify);
  const root = rootFromInclusion(proof.index, checkpoint.size, leafHash, proof.path);
  if (root === null)
    throw new ProofError(`the path has the wrong length for index ${proof.index} in a log of size ${checkpoint.size}`);
  if (!equalBytes(root, checkpoint.root))
    throw new ProofError("the path does not lead from this leaf to the checkpoint's root");
  return { index: proof.index, checkpoint, keys };
}
