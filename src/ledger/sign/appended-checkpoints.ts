/**
 * Appends signed checkpoints to a file. If the service cannot change the file later (an append-only file system,
 * another party's disk), the file proves which history was signed, and when. If the file is unavailable, the service
 * continues; a later checkpoint covers the checkpoints that were not written.
 */
import { mkdir, open, type FileHandle } from "node:fs/promises";
import { dirname } from "node:path";
import { withTimeLimit } from "../../cluster/time-limit.ts";
import type { Logger } from "../../contract/host.ts";
import type { SignedCheckpoint } from "../../contract/ledger.ts";

export interface AppendedCheckpoints {
  /** Schedules an append of the newest checkpoint, without delaying decisions. */
  changed(): void;
  /** Appends the newest checkpoint and waits until it is written, or until the time limit. Never rejects. */
  close(): Promise<void>;
  /** Returns true if an append is running. */
  isWriting(): boolean;
  readonly path: string;
}

/**
 * Opens the file. Each line is `{"at", "note", "size"}`.
 * @param newest a function that returns the checkpoint to write
 * @param closeMs time limit of the last append when the file is closed
 */
export function openCheckpointLog(
  path: string,
  everyMs: number,
  newest: () => SignedCheckpoint | null,
  clock: () => number,
  log: Pick<Logger, "warn">,
  closeMs: number,
): AppendedCheckpoints {
  let timer: ReturnType<typeof setTimeout> | null = null;
  let writing: Promise<void> = Promise.resolve();
  let written = -1;
  let complaint = "";
  /** Whether the file might end in an incomplete line, which an earlier process or a failed write can leave. */
  let mayBeTorn = true;
  let hasFolder = false;
  let isWriting = false;

  async function append(): Promise<void> {
    const signed = newest();
    if (signed === null || signed.size <= written) return;
    isWriting = true;
    try {
      // Create the folder only once. A folder that disappears later was moved or unmounted, and a new folder would hide
      // that.
      if (!hasFolder) await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      const begin = mayBeTorn && (await endsInsideLine(path)) ? "\n" : "";
      const file = await open(path, "a", 0o600);
      hasFolder = true;
      try {
        const line = JSON.stringify({ at: new Date(clock()).toISOString(), note: signed.note, size: signed.size });
        mayBeTorn = true;
        await file.appendFile(`${begin}${line}\n`);
        await file.sync();
        mayBeTorn = false;
      } finally {
        await file.close();
      }
      written = signed.size;
      complaint = "";
    } catch (error) {
      // Log each reason once.
      if (complaint !== String(error))
        log.warn("the newest checkpoint could not be appended; the next one will cover it", {
          path,
          error: String(error),
        });
      complaint = String(error);
      plan();
    } finally {
      isWriting = false;
    }
  }

  let closed = false;
  function plan(): void {
    if (closed) return;
    timer ??= setTimeout(() => {
      timer = null;
      writing = writing.then(append);
    }, everyMs);
    timer.unref?.();
  }

  return {
    path,
    changed: plan,
    isWriting: () => isWriting,
    async close() {
      closed = true;
      if (timer !== null) clearTimeout(timer);
      timer = null;
      writing = writing.then(append);
      await withTimeLimit(writing, closeMs, "the disk did not respond").catch(() => undefined);
    },
  };
}

/**
 * Returns true if the file might end in an incomplete line. Returns true for a file that cannot be read, because it
 * might permit only appending, and an extra empty line is harmless.
 */
async function endsInsideLine(path: string): Promise<boolean> {
  let file: FileHandle;
  try {
    file = await open(path, "r");
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ENOENT";
  }
  try {
    const { size } = await file.stat();
    if (size === 0) return false;
    const { buffer } = await file.read(new Uint8Array(1), 0, 1, size - 1);
    return buffer[0] !== 0x0a;
  } finally {
    await file.close();
  }
}
