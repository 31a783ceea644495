/**
 * The newest signed checkpoint, kept in a file beside the store. A store cannot tell that it was replaced by an
 * older copy of itself; whoever remembers a later checkpoint can.
 */
import { randomUUID } from "node:crypto";
import { readFileSync, renameSync } from "node:fs";
import { mkdir, open, rename } from "node:fs/promises";
import { dirname } from "node:path";
import type { Logger } from "../contract/host.ts";

/** A crash forgets at most what was signed in this time. Milliseconds. */
const EVERY = 5000;

export interface KeptCheckpoint {
  readonly path: string;
  /** The note as it stands; null when there is none. Throws when it cannot be read. */
  read(): string | null;
  /** Says that there may be a newer one; it is written soon. Never on the way of a decision. */
  changed(): void;
  /** Puts the present one aside, under a name that says what it was. Answers that name. */
  setAside(size: number): string;
  close(): Promise<void>;
}

/** @param newest the note to keep, asked for when it is written */
export function keepCheckpoint(path: string, newest: () => string | null, log: Logger): KeptCheckpoint {
  let timer: ReturnType<typeof setTimeout> | null = null;
  let writing: Promise<void> = Promise.resolve();
  let written: string | null = null;

  async function write(): Promise<void> {
    const note = newest();
    if (note === null || note === written) return;
    try {
      await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      // Of this process alone: several may keep their checkpoint in one place.
      const part = `${path}.${randomUUID().slice(0, 8)}.new`;
      const file = await open(part, "wx", 0o600);
      try {
        await file.writeFile(note);
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(part, path);
      written = note;
    } catch (error) {
      log.warn("the newest checkpoint could not be kept beside the store", { path, error: String(error) });
    }
  }

  return {
    path,
    read() {
      try {
        const note = readFileSync(path, "utf8");
        // What a power loss may leave of a file that was being written.
        return note.trim() === "" ? null : note;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
        throw error;
      }
    },
    changed() {
      timer ??= setTimeout(() => {
        timer = null;
        writing = writing.then(write);
      }, EVERY);
      timer.unref?.();
    },
    setAside(size) {
      const aside = `${path}.before-rollback-${size}`;
      renameSync(path, aside);
      return aside;
    },
    async close() {
      if (timer !== null) clearTimeout(timer);
      timer = null;
      await (writing = writing.then(write));
    },
  };
}
