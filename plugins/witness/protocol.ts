/** C2SP tlog-witness: the body of an add-checkpoint request. */
import { fromBase64, NoteError, toBase64 } from "../../src/core.ts";

/** Maximum number of hashes in a proof. */
const MAX_PROOF = 63;

export interface AddCheckpointRequest {
  /** The size that the witness last cosigned, as far as the sender knows; 0 if it has not cosigned any checkpoint. */
  old: number;
  /** Consistency proof from `old` to the checkpoint. */
  proof: Uint8Array[];
  /** The checkpoint as a signed note. */
  checkpoint: string;
}

export function formatAddCheckpoint({ old, proof, checkpoint }: AddCheckpointRequest): string {
  return [`old ${old}`, ...proof.map(toBase64), "", checkpoint].join("\n");
}

/** Parses the body of an add-checkpoint request. Throws NoteError("malformed"). */
export function parseAddCheckpoint(body: string): AddCheckpointRequest {
  const bad = (reason: string): never => {
    throw new NoteError("malformed", `the request cannot be read: ${reason}`);
  };
  const split = body.indexOf("\n\n");
  if (split < 0) return bad("expected a blank line before the checkpoint");
  const [first = "", ...lines] = body.slice(0, split).split("\n");
  const old = /^old (0|[1-9]\d{0,15})$/.exec(first)?.[1];
  if (old === undefined || !Number.isSafeInteger(Number(old))) return bad('its first line is not "old <size>"');
  if (lines.length > MAX_PROOF) return bad(`its proof has more than ${MAX_PROOF} hashes`);
  let proof: Uint8Array[];
  try {
    proof = lines.map(fromBase64);
  } catch {
    return bad("its proof is not canonical base64");
  }
  if (proof.some((hash) => hash.length !== 32)) return bad("a hash of its proof is not 32 bytes long");
  return { old: Number(old), proof, checkpoint: body.slice(split + 2) };
}
