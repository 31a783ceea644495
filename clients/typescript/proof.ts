/** Verifies proofs. Loaded only if a log key is pinned. */
import type { VerifySignature } from "../../src/domain/checkpoint.ts";
import { equalBytes, fromBase64, fromHex } from "../../src/domain/hash.ts";
import { currentVkey, openCheckpointFromPin, type LogKeyProof } from "../../src/domain/log-keys.ts";
import { hashLeaf, verifyInclusion } from "../../src/domain/merkle.ts";
import { ProofInvalid } from "./client-errors.ts";
import { isObject } from "./transport.ts";

interface ProvenEntry {
  entry: Record<string, unknown>;
  /** Index of the entry in the log. */
  index: number;
  /** Size of the signed checkpoint. */
  size: number;
  /** Verifier key of the log that signed the checkpoint: the pinned key or its successor. */
  vkey: string;
}

/** Returns the entry with this leaf hash, verified against the pinned key or its successor. Throws ProofInvalid. */
export async function verifyProof(proof: unknown, leafHash: string, vkey: string): Promise<ProvenEntry> {
  try {
    const { leaf, index, path, checkpoint: note, log_keys } = readProof(proof);
    const bytes = fromBase64(leaf);
    const hash = hashLeaf(bytes);
    if (!equalBytes(hash, fromHex(leafHash))) throw new Error("the entry is not the one that was requested");
    const { checkpoint, keys } = await openSignedCheckpoint(note, vkey, log_keys);
    const { size, root } = checkpoint;
    if (!verifyInclusion({ index, size, leafHash: hash, path: path.map(fromHex), root }))
      throw new Error("the path does not lead from the entry to the signed root");
    const entry: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    if (!isObject(entry) || entry["seq"] !== index) throw new Error("the entry states a different position");
    return { entry, index, size, vkey: currentVkey(keys) };
  } catch (error) {
    throw new ProofInvalid(error instanceof Error ? error.message : String(error), { cause: error });
  }
}

interface Proof {
  leaf: string;
  index: number;
  path: string[];
  checkpoint: string;
  log_keys: LogKeyProof[];
}

function readProof(proof: unknown): Proof {
  if (!isObject(proof)) throw new Error("it is not an object");
  const { leaf, index, path, checkpoint, log_keys = [] } = proof;
  if (
    typeof leaf !== "string" ||
    typeof index !== "number" ||
    typeof checkpoint !== "string" ||
    !Array.isArray(path) ||
    !path.every((hash) => typeof hash === "string") ||
    !Array.isArray(log_keys)
  )
    throw new Error("it does not have the members of a proof");
  return { leaf, index, path, checkpoint, log_keys: log_keys as LogKeyProof[] };
}

/**
 * Verifies the signature of a checkpoint. First collects the signatures and then verifies them, because the domain's
 * verifier is synchronous and WebCrypto is not.
 */
async function openSignedCheckpoint(
  note: string,
  pin: string,
  proofs: readonly LogKeyProof[],
): Promise<ReturnType<typeof openCheckpointFromPin>> {
  const claims: Parameters<VerifySignature>[] = [];
  const opened = openCheckpointFromPin(note, pin, proofs, (...claim) => claims.push(claim) > 0);
  const { subtle } = globalThis.crypto;
  for (const [publicKey, message, signature] of claims) {
    const key = await subtle.importKey("raw", buffer(publicKey), "Ed25519", false, ["verify"]);
    if (!(await subtle.verify("Ed25519", key, buffer(signature), buffer(message))))
      throw new Error("the signature does not match the checkpoint");
  }
  if (claims.length === 0) throw new Error("the checkpoint is not signed by the pinned key");
  return opened;
}

const buffer = (bytes: Uint8Array): Uint8Array<ArrayBuffer> => new Uint8Array(bytes);
