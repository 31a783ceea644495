/**
 * Signs committed heads, each at most once, and only if a head extends the last signed one. A signature is returned
 * only after it was stored outside the store, so that neither a crash nor a restore makes this process forget it.
 */
import type { Vault } from "../../contract/core-host.ts";
import type { SignedCheckpoint } from "../../contract/ledger.ts";
import { StorageError, type LedgerHead, type Storage } from "../../contract/storage.ts";
import { signCheckpoint, type NoteSigner } from "../../domain/checkpoint.ts";
import { equalBytes } from "../../domain/hash.ts";
import { openLogCheckpoint, type LogKeys } from "../../domain/log-keys.ts";
import type { ProofReader } from "../reader.ts";

/** Minimum interval between signatures of commits under load. Milliseconds. */
const SIGN_EVERY = 100;

export interface Checkpoints {
  /** Returns the newest signed checkpoint; null if there is none. */
  latest(): SignedCheckpoint | null;
  /**
   * Schedules the signature of a head that this process committed.
   * @param base the checkpoint that the head is known to extend, verified under the ledger's lock
   */
  committed(head: LedgerHead, base: SignedCheckpoint | null): void;
  /** Signs the committed head that `read` returns. Rejects with StorageError "corrupt" if the head has another history. */
  sign(read: () => Promise<LedgerHead>): Promise<SignedCheckpoint>;
  extendsHistory(head: LedgerHead): Promise<boolean>;
  /** Returns a checkpoint that is not stored yet; null if there is none. */
  unstored(): { size: number; note: string } | null;
  stored(size: number): void;
  /** Signs the last committed head. */
  close(): Promise<void>;
}

export interface CheckpointOptions {
  origin: string;
  /** Returns the signers of a checkpoint of this size. Throws StorageError if this process must not sign it. */
  signers(size: number): readonly NoteSigner[];
  proofs: ProofReader;
  start: SignedCheckpoint | null;
  /** Stores the note durably outside the store. Rejects if that fails. */
  keep(note: string): Promise<void>;
  /** Called after each new checkpoint. */
  signed(): void;
  /** Called when a committed head could not be signed. */
  failed(error: unknown, size: number): void;
}

export function createCheckpoints(options: CheckpointOptions): Checkpoints {
  const { origin, proofs } = options;
  let latest = options.start;
  let storedSize = latest?.size ?? -1;
  let waiting: { head: LedgerHead; base: SignedCheckpoint | null } | null = null;
  let timer: ReturnType<typeof setTimeout> | null = null;
  let signedAt = -Infinity;
  /** Checkpoints of heads that this process committed. Its later commits extend them. */
  const own = new WeakSet<SignedCheckpoint>();
  /** Signatures are made one at a time, because each must extend the previous one. */
  let queue: Promise<unknown> = Promise.resolve();

  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const mine = queue.then(work);
    queue = mine.catch(() => undefined);
    return mine;
  }

  /** Signs a head that is known to extend `latest`. One call at a time. */
  async function publish(head: LedgerHead): Promise<SignedCheckpoint> {
    if (latest !== null && latest.size === head.size && equalBytes(latest.root, head.root)) return latest;
    if (latest !== null && latest.size >= head.size) {
      throw new StorageError(
        "corrupt",
        `the head (size ${head.size}) is behind the signed checkpoint (size ${latest.size})`,
      );
    }
    const note = signCheckpoint({ origin, size: head.size, root: head.root }, ...options.signers(head.size));
    await options.keep(note);
    latest = { size: head.size, root: head.root, note };
    signedAt = performance.now();
    options.signed();
    return latest;
  }

  async function extendsCheckpoint(head: LedgerHead, signed: SignedCheckpoint | null): Promise<boolean> {
    if (signed === null || signed.size === 0) return true;
    if (head.size < signed.size) return false;
    if (head.size === signed.size) return equalBytes(head.root, signed.root);
    return equalBytes(await proofs.rootAt(signed.size), signed.root);
  }

  function doesNotExtend(head: LedgerHead, signed: SignedCheckpoint | null): StorageError {
    return new StorageError(
      "corrupt",
      `the head (size ${head.size}) does not extend the signed checkpoint (size ${signed?.size ?? 0}); it is not signed`,
    );
  }

  async function signWaiting(): Promise<void> {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    const next = waiting;
    waiting = null;
    if (next === null) return;
    const { head, base } = next;
    try {
      await inTurn(async () => {
        // A newer head may have been signed on request.
        if (latest !== null && latest.size >= head.size) return;
        const isOwn = latest === base || (latest !== null && own.has(latest));
        if (!isOwn && !(await extendsCheckpoint(head, latest))) throw doesNotExtend(head, latest);
        own.add(await publish(head));
      });
    } catch (error) {
      options.failed(error, head.size);
    }
  }

  return {
    latest: () => latest,
    committed(head, base) {
      waiting = { head, base };
      if (timer !== null) return;
      timer = setTimeout(() => void signWaiting(), Math.max(0, SIGN_EVERY - (performance.now() - signedAt)));
    },
    extendsHistory: (head) => extendsCheckpoint(head, latest),
    async sign(read) {
      // Read the checkpoint before the head, because an older head need not contain a newer checkpoint.
      const before = latest;
      const head = await read();
      if (!(await extendsCheckpoint(head, before))) throw doesNotExtend(head, before);
      return inTurn(async () => {
        // Under load, a newer checkpoint is signed during each read. It also extends `before`.
        if (latest !== null && latest !== before) {
          if (latest.size > head.size) return latest;
          if (!(await extendsCheckpoint(head, latest))) throw doesNotExtend(head, latest);
        }
        return publish(head);
      });
    },
    unstored: () => (latest !== null && latest.size > storedSize ? { size: latest.size, note: latest.note } : null),
    stored(size) {
      storedSize = Math.max(storedSize, size);
    },
    async close() {
      await signWaiting();
      await queue;
    },
  };
}

/** Returns the newest checkpoint in the store. Throws if this log has not signed it. */
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
