/**
 * Signed checkpoints, each at the end of a file that is only ever appended to. On a place that its writer cannot change
 * (an append-only file system, a disk of somebody else's) it shows which history was signed, and when. A place that is
 * away holds up nothing, and a later checkpoint covers what it missed.
 */
import { mkdir, open, type FileHandle } from "node:fs/promises";
import { dirname } from "node:path";
import type { Logger } from "../../contract/host.ts";
import type { SignedCheckpoint } from "../../contract/ledger.ts";

export interface AppendedCheckpoints {
  /** Says that there may be a newer one; it is appended soon. Never on the way of a decision. */
  changed(): void;
  /** Appends what is newest, and waits for it. Never rejects. */
  close(): Promise<void>;
}

/** A line for each: `{"at", "note", "size"}`. @param newest asked for when it is written */
export function appendCheckpoints(
  path: string,
  everyMs: number,
  newest: () => SignedCheckpoint | null,
  clock: () => number,
  log: Pick<Logger, "warn">,
): AppendedCheckpoints {
  let timer: ReturnType<typeof setTimeout> | null = null;
  let writing: Promise<void> = Promise.resolve();
  let written = -1;
  let complaint = "";
  /** True while the file might end inside a line: at first, because of an earlier process, and after a failed write. */
  let mayBeTorn = true;
  let hasFolder = false;

  async function append(): Promise<void> {
    const signed = newest();
    if (signed === null || signed.size <= written) return;
    try {
      // Created once: a folder that disappears later was moved or unmounted, and a new one would hide that.
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
      // Once for each reason, however often it is met.
      if (complaint !== String(error))
        log.warn("the newest checkpoint could not be appended; the next one will cover it", {
          path,
          error: String(error),
        });
      complaint = String(error);
      plan();
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
    changed: plan,
    async close() {
      closed = true;
      if (timer !== null) clearTimeout(timer);
      timer = null;
      await (writing = writing.then(append));
    },
  };
}

/** A file that only lets its writer append might be unreadable. It counts as torn: an empty line does no harm. */
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
