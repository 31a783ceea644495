/** Stores the newest checkpoint after a delay, unless a batch stores it earlier. */
import type { Logger } from "../../contract/host.ts";
import { StorageError, type Storage } from "../../contract/storage.ts";
import type { Checkpoints } from "./checkpoints.ts";

/** Delay after which a checkpoint is stored if no batch has stored it. Milliseconds. */
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

  /** Stores the newest checkpoint soon, if it is not stored yet. */
  schedule(): void {
    if (this.checkpoints.unstored() === null) return;
    this.timer ??= setTimeout(() => void this.store(), STORE_CHECKPOINT_DELAY_MS);
    this.timer.unref?.();
  }

  /** Called when a batch has stored the checkpoint of this size. */
  stored(size: number): void {
    this.checkpoints.stored(size);
    if (this.timer === null || this.checkpoints.unstored() !== null) return;
    // Stop the timer. The next batch stores the next checkpoint, without a separate transaction.
    clearTimeout(this.timer);
    this.timer = null;
  }

  /** Stores the newest checkpoint now. */
  async close(): Promise<void> {
    if (this.timer !== null) clearTimeout(this.timer);
    await this.store();
  }

  private async store(): Promise<void> {
    this.timer = null;
    const waiting = this.checkpoints.unstored();
    // The first batch stores the checkpoint of an empty log.
    if (waiting === null || waiting.size === 0) return;
    try {
      await this.storage.write(async (tx) => {
        if ((await tx.head()).server?.isSettled === false)
          throw new StorageError("unavailable", "the processes have not agreed on the database yet");
        await tx.putCheckpoint(waiting.size, waiting.note);
      });
      this.checkpoints.stored(waiting.size);
    } catch (error) {
      // The checkpoint stays in memory, and the next batch stores it.
      this.log.warn("the newest checkpoint could not be stored yet", { size: waiting.size, error: String(error) });
    }
  }
}
