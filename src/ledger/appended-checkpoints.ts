/**
 * Signed checkpoints, each at the end of a file that is only ever appended to. On a place that its writer cannot change
 * (an append-only file system, a disk of somebody else's) it shows which history was signed, and when. A place that is
 * away holds up nothing, and a later checkpoint covers what it missed.
 */
import { mkdir, open } from "node:fs/promises";
import { dirname } from "node:path";
import type { Logger, SignedCheckpoint } from "../contract/host.ts";

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
  /** The last write, or that of an earlier process, may have left part of a line. */
  let torn = true;

  async function append(): Promise<void> {
    const signed = newest();
    if (signed === null || signed.size <= written) return;
    try {
      await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      const file = await open(path, "a", 0o600);
      try {
        const line = JSON.stringify({ at: new Date(clock()).toISOString(), note: signed.note, size: signed.size });
        // An empty line harms no reader; a line that begins inside another is lost.
        const begin = torn && (await file.stat()).size > 0 ? "\n" : "";
        torn = true;
        await file.appendFile(`${begin}${line}\n`);
        await file.sync();
        torn = false;
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
