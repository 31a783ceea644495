/** Proofs, checked as they arrive. Loaded only where a log's key is pinned. */
import { openCheckpoint, type Verify } from "../domain/checkpoint.ts";
import { equalBytes, fromBase64, fromHex } from "../domain/hash.ts";
import { hashLeaf, verifyInclusion } from "../domain/merkle.ts";
import { ProofInvalid } from "./errors.ts";
import { isObject } from "./transport.ts";

export interface ProvenEntry {
  entry: Record<string, unknown>;
  /** Its place in the log. */
  index: number;
  /** Of the signed checkpoint that the proof leads to. */
  size: number;
}

/** The entry with this leaf hash under the pinned key. Throws ProofInvalid. */
export async function verifyProof(proof: unknown, leafHash: string, vkey: string): Promise<ProvenEntry> {
  try {
    const { leaf, index, path, checkpoint: note } = readProof(proof);
    const bytes = fromBase64(leaf);
    const hash = hashLeaf(bytes);
    if (!equalBytes(hash, fromHex(leafHash))) throw new Error("the entry is another one than was asked for");
    const checkpoint = await openSigned(note, vkey);
    const { size, root } = checkpoint;
    if (!verifyInclusion({ index, size, leafHash: hash, path: path.map(fromHex), root }))
      throw new Error("the path does not lead from the entry to the signed root");
    const entry: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    if (!isObject(entry) || entry["seq"] !== index) throw new Error("the entry says that it stands elsewhere");
    return { entry, index, size };
  } catch (error) {
    throw new ProofInvalid(error instanceof Error ? error.message : String(error), { cause: error });
  }
}

function readProof(proof: unknown): { leaf: string; index: number; path: string[]; checkpoint: string } {
  if (!isObject(proof)) throw new Error("it is no object");
  const { leaf, index, path, checkpoint } = proof;
  if (
    typeof leaf !== "string" ||
    typeof index !== "number" ||
    typeof checkpoint !== "string" ||
    !Array.isArray(path) ||
    !path.every((hash) => typeof hash === "string")
  )
    throw new Error("it has not the members of a proof");
  return { leaf, index, path, checkpoint };
}

/** The domain's reader asks for an answer at once and the platform's Ed25519 gives it later: the claims are kept for it. */
async function openSigned(note: string, vkey: string): Promise<ReturnType<typeof openCheckpoint>> {
  const claims: Parameters<Verify>[] = [];
  const checkpoint = openCheckpoint(note, vkey, (...claim) => claims.push(claim) > 0);
  const { subtle } = globalThis.crypto;
  for (const [publicKey, message, signature] of claims) {
    const key = await subtle.importKey("raw", buffer(publicKey), "Ed25519", false, ["verify"]);
    if (!(await subtle.verify("Ed25519", key, buffer(signature), buffer(message))))
      throw new Error("the signature does not fit the checkpoint");
  }
  if (claims.length === 0) throw new Error("the checkpoint is not signed by the pinned key");
  return checkpoint;
}

const buffer = (bytes: Uint8Array): Uint8Array<ArrayBuffer> => new Uint8Array(bytes);
