/** The store's files, which only the user that runs the service can access. */
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

/**
 * Creates a missing folder (0700). Returns the file's path without symbolic links, so that one store has one lock.
 */
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
 * Creates an empty file (0600) if it does not exist. Throws if an existing file is not writable. Does not open an
 * existing file, because closing it again would release the locks that SQLite holds on it in this process.
 */
export function createPrivateFile(path: string): void {
  try {
    closeSync(openSync(path, "wx", 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw toStorageError(error, `create ${path}`);
  }
  try {
    // SQLite would silently open the file read-only, and create files next to it that no one can write.
    accessSync(path, constants.R_OK | constants.W_OK);
  } catch (error) {
    throw toStorageError(error, `write ${path}`);
  }
}

/**
 * Returns an identifier that distinguishes the file from other files that were at the same path; null if there is no
 * file.
 */
export function readFileIdentity(path: string): string | null {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats === undefined ? null : `${stats.dev} ${stats.ino}`;
}

/**
 * Syncs the parent folder. SQLite syncs the folder that contains its files, but not the folder above it, which contains
 * the directory entry of a new folder.
 */
function syncFolder(folder: string): void {
  let fd: number | undefined;
  try {
    fd = openSync(folder, "r");
    fsyncSync(fd);
  } catch {
    // Ignore the error, because some systems cannot open or sync a folder.
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}
