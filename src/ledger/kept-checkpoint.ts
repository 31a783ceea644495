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
  /** Puts the present one aside, under a name that says what it was. Returns that name. */
  setAside(size: number): string;
  close(): Promise<void>;
}

/**
 * @param newest the note to keep, asked for when it is written
 * @param optional nobody asked for this place: where it may not be used, that is said once and the service goes on
 */
export function keepCheckpoint(
  path: string,
  newest: () => string | null,
  log: Logger,
  { optional = false }: { optional?: boolean } = {},
): KeptCheckpoint {
  let timer: ReturnType<typeof setTimeout> | null = null;
  let writing: Promise<void> = Promise.resolve();
  let written: string | null = null;
  let unusable = false;

  function skip(error: unknown): void {
    if (unusable) return;
    unusable = true;
    log.warn("the newest checkpoint is not kept outside the data folder; set `state`, or ASSENT_STATE", {
      path,
      error: String(error),
    });
  }

  async function write(): Promise<void> {
    const note = newest();
    if (note === null || note === written || unusable) return;
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
      if (optional) skip(error);
      else log.warn("the newest checkpoint could not be kept beside the store", { path, error: String(error) });
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
        if (!optional || !isForbidden(error)) throw error;
        skip(error);
        return null;
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

/** By the system, or by Deno's permissions. */
function isForbidden(error: unknown): boolean {
  const { code, name } = error as NodeJS.ErrnoException;
  return code === "EACCES" || code === "EPERM" || name === "NotCapable" || name === "PermissionDenied";
}
