/**
 * Signs committed heads, each at most once, and only if the head extends the last signed head. Returns a signature only
 * after it was stored outside the store, so that a crash or a restore of the store cannot lose it.
 */
import type { Vault } from "../../contract/core-host.ts";
import type { SignedCheckpoint } from "../../contract/ledger.ts";
import { StorageError, type LedgerHead, type Storage } from "../../contract/storage.ts";
import { signCheckpoint, type NoteSigner } from "../../domain/checkpoint.ts";
import { equalBytes } from "../../domain/hash.ts";
import { openLogCheckpoint, type LogKeys } from "../../domain/log-keys.ts";
import type { ProofReader } from "../reader.ts";

/**
 * Minimum interval between scheduled checkpoint signatures. Under load, one signature covers several commits.
 * Milliseconds.
 */
const SIGN_EVERY = 100;
/** Interval at which a failed signature is tried again. Milliseconds. */
export const RETRY_MS = 1_000;

interface CheckpointOptions {
  origin: string;
  /** Returns the signers for a checkpoint of this size. Throws StorageError if this process must not sign it. */
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

export class Checkpoints {
  private readonly options: CheckpointOptions;
  private newest: SignedCheckpoint | null;
  private storedSize: number;
  private waiting: { head: LedgerHead; base: SignedCheckpoint | null } | null = null;
  private timer: ReturnType<typeof setTimeout> | null = null;
  private signedAt = -Infinity;
  private isSigning = false;
  private isClosed = false;
  /** Size of the last head that this process committed. */
  private committedSize = 0;
  /** Time of the first commit of this process that no checkpoint covers; null if there is none. */
  private unsignedSince: number | null = null;
  /** Checkpoints of heads that this process committed. Later commits of this process always extend them. */
  private readonly own = new WeakSet<SignedCheckpoint>();
  /** Pending signatures. They are made one at a time, because each must extend the previously signed checkpoint. */
  private queue: Promise<unknown> = Promise.resolve();

  constructor(options: CheckpointOptions) {
    this.options = options;
    this.newest = options.start;
    this.storedSize = this.newest?.size ?? -1;
  }

  /** Returns the newest signed checkpoint; null if there is none. */
  latest(): SignedCheckpoint | null {
    return this.newest;
  }

  /**
   * Schedules the signature of a head that this process committed.
   * @param base the checkpoint that the head extends, as verified under the ledger's lock
   */
  committed(head: LedgerHead, base: SignedCheckpoint | null): void {
    this.waiting = { head, base };
    this.committedSize = head.size;
    if (head.size > (this.newest?.size ?? 0)) this.unsignedSince ??= performance.now();
    this.schedule(SIGN_EVERY - (performance.now() - this.signedAt));
  }

  /**
   * Returns the milliseconds since this process committed the first entry that no checkpoint covers; 0 if there is no
   * such entry.
   */
  unsignedMs(): number {
    return this.unsignedSince === null ? 0 : performance.now() - this.unsignedSince;
  }

  private schedule(ms: number): void {
    if (this.timer === null && !this.isSigning && !this.isClosed)
      this.timer = setTimeout(() => void this.signWaiting(), Math.max(0, ms));
  }

  extendsHistory(head: LedgerHead): Promise<boolean> {
    return this.extendsCheckpoint(head, this.newest);
  }

  /**
   * Signs the committed head that `read` returns. Rejects with StorageError "corrupt" if the head has a different
   * history.
   */
  async sign(read: () => Promise<LedgerHead>): Promise<SignedCheckpoint> {
    const startedAt = performance.now();
    // Read the checkpoint before the head, because an older head might not contain a newer checkpoint.
    const before = this.newest;
    const head = await read();
    if (!(await this.extendsCheckpoint(head, before))) throw this.doesNotExtend(head, before);
    return this.inTurn(async () => {
      // Under load, a newer checkpoint is signed during each read. That checkpoint also extends `before`.
      if (this.newest !== null && this.newest !== before) {
        if (this.newest.size > head.size) return this.newest;
        if (!(await this.extendsCheckpoint(head, this.newest))) throw this.doesNotExtend(head, this.newest);
      }
      return this.publish(head, startedAt);
    });
  }

  /** Returns a checkpoint that is not stored yet; null if there is none. */
  unstored(): { size: number; note: string } | null {
    return this.newest !== null && this.newest.size > this.storedSize
      ? { size: this.newest.size, note: this.newest.note }
      : null;
  }

  stored(size: number): void {
    this.storedSize = Math.max(this.storedSize, size);
  }

  /** Signs the last committed head. */
  async close(): Promise<void> {
    this.isClosed = true;
    await this.queue;
    await this.signWaiting();
    await this.queue;
  }

  private inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.queue.then(work);
    this.queue = result.catch(() => undefined);
    return result;
  }

  /**
   * Signs a head that is known to extend `newest`. Must not be called concurrently.
   * @param asOf `head` covers every head that was committed before this time
   */
  private async publish(head: LedgerHead, asOf: number): Promise<SignedCheckpoint> {
    if (this.newest !== null && this.newest.size === head.size && equalBytes(this.newest.root, head.root))
      return this.newest;
    if (this.newest !== null && this.newest.size >= head.size) {
      throw new StorageError(
        "corrupt",
        `the head (size ${head.size}) is behind the signed checkpoint (size ${this.newest.size})`,
      );
    }
    const note = signCheckpoint(
      { origin: this.options.origin, size: head.size, root: head.root },
      ...this.options.signers(head.size),
    );
    await this.options.keep(note);
    this.newest = { size: head.size, root: head.root, note };
    this.signedAt = performance.now();
    this.unsignedSince = this.committedSize > head.size ? asOf : null;
    this.options.signed();
    return this.newest;
  }

  private async extendsCheckpoint(head: LedgerHead, signed: SignedCheckpoint | null): Promise<boolean> {
    if (signed === null || signed.size === 0) return true;
    if (head.size < signed.size) return false;
    if (head.size === signed.size) return equalBytes(head.root, signed.root);
    return equalBytes(await this.options.proofs.rootAt(signed.size), signed.root);
  }

  private doesNotExtend(head: LedgerHead, signed: SignedCheckpoint | null): StorageError {
    return new StorageError(
      "corrupt",
      `the head (size ${head.size}) does not extend the signed checkpoint (size ${signed?.size ?? 0}); it is not signed`,
    );
  }

  private async signWaiting(): Promise<void> {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    const next = this.waiting;
    this.waiting = null;
    if (next === null) return;
    const { head, base } = next;
    const startedAt = performance.now();
    this.isSigning = true;
    try {
      await this.inTurn(async () => {
        // Since the head was committed, a newer head may have been signed on request.
        if (this.newest !== null && this.newest.size >= head.size) return;
        const isOwn = this.newest === base || (this.newest !== null && this.own.has(this.newest));
        if (!isOwn && !(await this.extendsCheckpoint(head, this.newest))) throw this.doesNotExtend(head, this.newest);
        this.own.add(await this.publish(head, startedAt));
      });
      this.isSigning = false;
      if (this.waiting !== null) this.schedule(SIGN_EVERY);
    } catch (error) {
      this.isSigning = false;
      this.options.failed(error, head.size);
      if (!canSignLater(error)) return;
      this.waiting ??= next;
      this.schedule(RETRY_MS);
    }
  }
}

/**
 * Returns true if the signature can be retried: the store or a file could not be used, but nothing contradicts the
 * head.
 */
export function canSignLater(error: unknown): error is StorageError {
  return error instanceof StorageError && error.kind !== "corrupt" && error.kind !== "invalid";
}

/**
 * Returns the newest checkpoint in the store; null if there is none. Throws NoteError if this log has not signed it.
 */
export async function readStoredCheckpoint(
  storage: Storage,
  keys: LogKeys,
  verify: Vault["verify"],
): Promise<SignedCheckpoint | null> {
  const stored = await storage.checkpoint();
  if (stored === null) return null;
  const { size, root } = openLogCheckpoint(stored.note, keys, verify);
  return { size, root, note: stored.note };
}
