/** Signs committed heads, at most once each, and never one that does not extend the last one signed. */
import type { SignedCheckpoint, Vault } from "../contract/host.ts";
import { StorageError, type LedgerHead } from "../contract/storage.ts";
import { signCheckpoint } from "../domain/checkpoint.ts";
import { equalBytes } from "../domain/hash.ts";
import type { ProofReader } from "./reader.ts";

export interface Checkpoints {
  latest(): SignedCheckpoint | null;
  /** Signs a head that this process committed itself on top of the last signed one. */
  signNext(head: LedgerHead): SignedCheckpoint;
  /** Signs any committed head, after a look at the tree. Rejects with StorageError("corrupt") when it is another history. */
  sign(head: LedgerHead): Promise<SignedCheckpoint>;
  extendsHistory(head: LedgerHead): Promise<boolean>;
  unstored(): { size: number; note: string } | null;
  stored(size: number): void;
}

export function createCheckpoints(
  origin: string,
  vault: Vault,
  proofs: ProofReader,
  start: SignedCheckpoint | null,
): Checkpoints {
  let latest = start;
  let storedSize = start?.size ?? -1;

  function signNext(head: LedgerHead): SignedCheckpoint {
    if (latest !== null && latest.size === head.size && equalBytes(latest.root, head.root)) return latest;
    if (latest !== null && latest.size >= head.size) {
      throw new StorageError("corrupt", `the head (size ${head.size}) is behind the signed checkpoint (size ${latest.size})`);
    }
    const note = signCheckpoint({ origin, size: head.size, root: head.root }, { name: origin, publicKey: vault.publicKey, sign: (m) => vault.sign(m) });
    latest = { size: head.size, root: head.root, note };
    return latest;
  }

  async function extendsHistory(head: LedgerHead): Promise<boolean> {
    if (latest === null || latest.size === 0) return true;
    if (head.size < latest.size) return false;
    if (head.size === latest.size) return equalBytes(head.root, latest.root);
    return equalBytes(await proofs.rootAt(latest.size), latest.root);
  }

  return {
    latest: () => latest,
    signNext,
    extendsHistory,
    async sign(head) {
      if (!(await extendsHistory(head))) {
        throw new StorageError("corrupt", `the head (size ${head.size}) does not extend the signed checkpoint (size ${latest?.size ?? 0}); it is not signed`);
      }
      return latest !== null && latest.size > head.size ? latest : signNext(head);
    },
    unstored: () => (latest !== null && latest.size > storedSize ? { size: latest.size, note: latest.note } : null),
    stored(size) {
      storedSize = Math.max(storedSize, size);
    },
  };
}
