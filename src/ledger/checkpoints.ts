/** Signs committed heads, at most once each, and never one that does not extend the last one signed. */
import type { SignedCheckpoint, Vault } from "../contract/host.ts";
import { StorageError, type LedgerHead, type Storage } from "../contract/storage.ts";
import { signCheckpoint, type NoteSigner } from "../domain/checkpoint.ts";
import { equalBytes } from "../domain/hash.ts";
import { openLogCheckpoint, type LogKeys } from "../domain/log-keys.ts";
import type { ProofReader } from "./reader.ts";

export interface Checkpoints {
  latest(): SignedCheckpoint | null;
  /** Signs a head that this process committed itself on top of the last signed one. */
  signNext(head: LedgerHead): SignedCheckpoint;
  /** Signs the committed head that `read` gives, after a look at the tree. Rejects with StorageError("corrupt") when it is another history. */
  sign(read: () => Promise<LedgerHead>): Promise<SignedCheckpoint>;
  extendsHistory(head: LedgerHead): Promise<boolean>;
  unstored(): { size: number; note: string } | null;
  stored(size: number): void;
}

/** @param signers of a checkpoint of this size; throws StorageError where this process may not sign it */
export function createCheckpoints(
  origin: string,
  signers: (size: number) => readonly NoteSigner[],
  proofs: ProofReader,
  start: SignedCheckpoint | null,
): Checkpoints {
  let latest = start;
  let storedSize = start?.size ?? -1;

  function signNext(head: LedgerHead): SignedCheckpoint {
    if (latest !== null && latest.size === head.size && equalBytes(latest.root, head.root)) return latest;
    if (latest !== null && latest.size >= head.size) {
      throw new StorageError(
        "corrupt",
        `the head (size ${head.size}) is behind the signed checkpoint (size ${latest.size})`,
      );
    }
    const note = signCheckpoint({ origin, size: head.size, root: head.root }, ...signers(head.size));
    latest = { size: head.size, root: head.root, note };
    return latest;
  }

  /** Takes the signature as a value: while the tree is read, another may be signed. */
  async function holds(head: LedgerHead, signed: SignedCheckpoint | null): Promise<boolean> {
    if (signed === null || signed.size === 0) return true;
    if (head.size < signed.size) return false;
    if (head.size === signed.size) return equalBytes(head.root, signed.root);
    return equalBytes(await proofs.rootAt(signed.size), signed.root);
  }

  return {
    latest: () => latest,
    signNext,
    extendsHistory: (head) => holds(head, latest),
    async sign(read) {
      for (;;) {
        // Taken before the head is read: an older head need not contain it.
        const before = latest;
        const head = await read();
        if (!(await holds(head, before))) {
          throw new StorageError(
            "corrupt",
            `the head (size ${head.size}) does not extend the signed checkpoint (size ${before?.size ?? 0}); it is not signed`,
          );
        }
        if (latest === before) return signNext(head);
        // Another was signed meanwhile, on top of `before` too. If it is behind the head, the two were not compared
        // yet.
        if (latest !== null && latest.size > head.size) return latest;
      }
    },
    unstored: () => (latest !== null && latest.size > storedSize ? { size: latest.size, note: latest.note } : null),
    stored(size) {
      storedSize = Math.max(storedSize, size);
    },
  };
}

/** The newest that the store has. Throws for one that this log has not signed. */
export async function storedCheckpoint(
  storage: Storage,
  keys: LogKeys,
  verify: Vault["verify"],
): Promise<SignedCheckpoint | null> {
  const stored = await storage.checkpoint();
  if (stored === null) return null;
  const { size, root } = openLogCheckpoint(stored.note, keys, verify);
  return { size, root, note: stored.note };
}
