/** The newest checkpoint that other parties cosigned. */
import type { SignedCheckpoint } from "../../contract/ledger.ts";
import type { Storage } from "../../contract/storage.ts";
import type { VerifySignature } from "../../domain/checkpoint.ts";
import { openLogCheckpoint, type LogKeys } from "../../domain/log-keys.ts";

/** Name of the fact that contains the checkpoint with its cosignatures. */
export const COSIGNED_CHECKPOINT = "cosigned_checkpoint";

/**
 * Returns the newest cosigned checkpoint; null if there is none. Does not verify the cosignatures in `note`. Throws
 * NoteError if the checkpoint is malformed or the log's own signature is not valid.
 */
export async function readCosignedCheckpoint(
  storage: Pick<Storage, "meta">,
  keys: LogKeys,
  verify: VerifySignature,
): Promise<SignedCheckpoint | null> {
  const note = await storage.meta(COSIGNED_CHECKPOINT);
  if (note === null) return null;
  const { size, root } = openLogCheckpoint(note, keys, verify);
  return { size, root, note };
}
