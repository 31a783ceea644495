/** The store's files: private to the user that runs the service. */
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  realpathSync,
  statSync,
} from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { toStorageError } from "./sqlite-errors.ts";

/** Makes the folder (0700) when it is missing, and answers the file's path without symbolic links: one store, one lock. */
export function prepareFolder(path: string): string {
  const absolute = resolve(path);
  const folder = dirname(absolute);
  try {
    const created = mkdirSync(folder, { recursive: true, mode: 0o700 });
    if (created !== undefined) syncFolder(dirname(created));
    return existsSync(absolute) ? realpathSync(absolute) : join(realpathSync(folder), basename(absolute));
  } catch (error) {
    throw toStorageError(error, `create the folder ${folder}`);
  }
}

/**
 * Makes an empty file (0600) unless there is one, which must be writable. It is not opened: closing it again
 * would drop the locks that SQLite holds on it in this process.
 */
export function createPrivately(path: string): void {
  try {
    closeSync(openSync(path, "wx", 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw toStorageError(error, `create ${path}`);
  }
  try {
    // SQLite would open it read-only without a word, and leave files beside it that nobody can write.
    accessSync(path, constants.R_OK | constants.W_OK);
  } catch (error) {
    throw toStorageError(error, `write ${path}`);
  }
}

/** Tells a file from every other that takes its name; null where there is none. */
export function fileIdentity(path: string): string | null {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats === undefined ? null : `${stats.dev} ${stats.ino}`;
}

/** SQLite syncs the folder that holds its files; the folder's own name is in the one above. */
function syncFolder(folder: string): void {
  let fd: number | undefined;
  try {
    fd = openSync(folder, "r");
    fsyncSync(fd);
  } catch {
    // Not every system lets a folder be opened or synced.
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}
