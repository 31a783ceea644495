/** Stores the newest signature after a delay, unless a batch stores it earlier. */
import type { Logger } from "../../contract/host.ts";
import { StorageError, type Storage } from "../../contract/storage.ts";
import type { Checkpoints } from "./checkpoints.ts";

/** Delay after which a signature is stored if no batch has stored it. Milliseconds. */
const STORE_CHECKPOINT_DELAY_MS = 200;

export class CheckpointStore {
  private readonly storage: Pick<Storage, "write">;
  private readonly checkpoints: Pick<Checkpoints, "unstored" | "stored">;
  private readonly log: Logger;
  private timer: ReturnType<typeof setTimeout> | null = null;

  constructor(storage: Pick<Storage, "write">, checkpoints: Pick<Checkpoints, "unstored" | "stored">, log: Logger) {
    this.storage = storage;
    this.checkpoints = checkpoints;
    this.log = log;
  }

  /** Stores the newest signature soon, if it is not stored yet. */
  schedule(): void {
    if (this.checkpoints.unstored() === null) return;
    this.timer ??= setTimeout(() => void this.store(), STORE_CHECKPOINT_DELAY_MS);
    this.timer.unref?.();
  }

  /** Called when a batch stored the signature of a head of this size. */
  stored(size: number): void {
    this.checkpoints.stored(size);
    if (this.timer === null || this.checkpoints.unstored() !== null) return;
    // Otherwise the timer would store the next signature, which the next batch stores without a transaction of its own.
    clearTimeout(this.timer);
    this.timer = null;
  }

  /** Stores the newest signature now. */
  async close(): Promise<void> {
    if (this.timer !== null) clearTimeout(this.timer);
    await this.store();
  }

  private async store(): Promise<void> {
    this.timer = null;
    const waiting = this.checkpoints.unstored();
    // The signature of an empty log is stored with the first batch.
    if (waiting === null || waiting.size === 0) return;
    try {
      await this.storage.write(async (tx) => {
        if ((await tx.head()).server?.isSettled === false)
          throw new StorageError("unavailable", "the processes have not agreed on the database yet");
        await tx.putCheckpoint(waiting.size, waiting.note);
      });
      this.checkpoints.stored(waiting.size);
    } catch (error) {
      // The signature remains in memory, and the next batch stores it.
      this.log.warn("the newest checkpoint could not be stored yet", { size: waiting.size, error: String(error) });
    }
  }
}
