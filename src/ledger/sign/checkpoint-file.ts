/**
 * Stores the newest signed checkpoint in a file outside the store. A store cannot detect that it was replaced by an
 * older copy of itself, but a process that knows a later checkpoint can.
 */
import { randomUUID } from "node:crypto";
import { mkdirSync, readFileSync, renameSync } from "node:fs";
import { open, readFile, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { withTimeLimit } from "../../cluster/time-limit.ts";
import type { Config } from "../../config/index.ts";
import type { Vault } from "../../contract/core-host.ts";
import type { Logger } from "../../contract/host.ts";
import { StorageError } from "../../contract/storage.ts";
import { NoteError, parseCheckpoint, readNote } from "../../domain/checkpoint.ts";
import { equalBytes, sha256Hex, utf8 } from "../../domain/hash.ts";
import { openLogCheckpoint, type LogKeys } from "../../domain/log-keys.ts";
import { LedgerTampered } from "../tampered.ts";

/** Returns the path of the configured file, or else of the file in the data folder. */
export function checkpointFilePath({ data, ledger }: Pick<Config, "data" | "ledger">): string {
  return ledger.checkpoint_file ?? join(data, "checkpoint");
}

/**
 * Returns the path of a log's checkpoint in the state folder. The file name is a hash of the log's first key, because
 * the folder contains the checkpoints of all logs of a machine.
 */
export function stateCheckpointPath(stateFolder: string, firstKey: string): string {
  return join(stateFolder, `${sha256Hex(utf8(firstKey)).slice(0, 32)}.checkpoint`);
}

export interface CheckpointFile {
  readonly path: string;
  /**
   * Returns the stored note; null if no note is stored, or if access to an optional file is denied. Throws if the file
   * cannot be read for another reason.
   */
  read(): string | null;
  /**
   * Writes the note durably, unless another process stored a newer note at this path. If that fails or exceeds the time
   * limit, and the file is not optional, rejects with StorageError; the note must then not be returned to any caller.
   */
  keep(note: string): Promise<void>;
  /** Returns true if a write is running. After the time limit, it is the write of a disk that does not respond. */
  isWriting(): boolean;
  /** Renames the file, so that it is no longer used. Returns the new name, which contains the size. */
  setAside(size: number): string;
}

/**
 * Opens the file.
 * @param optional whether the service continues without the file if it is unusable. It then logs the failure once
 * @param limitMs time limit of a write
 */
export function openCheckpointFile(
  path: string,
  log: Logger,
  { optional = false, limitMs }: { optional?: boolean; limitMs: number },
): CheckpointFile {
  /** The running write. Only one runs, because a write that hangs occupies one of the few threads of the runtime. */
  let running: { startedAt: number; ended: Promise<void> } | null = null;
  let written: string | null = null;
  let unusable = false;
  let hasWarned = false;

  function skip(error: unknown): void {
    if (hasWarned) return;
    hasWarned = true;
    log.warn("the newest checkpoint is not stored outside the data folder; set `state` or ASSENT_STATE", {
      path,
      error: String(error),
    });
  }

  async function write(note: string): Promise<void> {
    if (note === written || unusable) return;
    try {
      if (sizeOf(await readFile(path, "utf8").catch(() => "")) > sizeOf(note)) return;
      await replaceFile(path, note);
      written = note;
      hasWarned = false;
    } catch (error) {
      if (optional) unusable = true;
      throw error;
    }
  }

  /** Starts the write once the earlier write has ended. */
  async function writeInTurn(note: string): Promise<void> {
    while (running !== null) await withinLimit(running);
    const result = write(note);
    const started = { startedAt: performance.now(), ended: result.catch(() => undefined) };
    running = started;
    void started.ended.then(() => (running = null));
    await withinLimit(started);
    await result;
  }

  function withinLimit({ startedAt, ended }: { startedAt: number; ended: Promise<void> }): Promise<void> {
    const remainingMs = startedAt + limitMs - performance.now();
    return withTimeLimit(ended, remainingMs, `the disk did not respond within ${limitMs / 1000} s`);
  }

  // Create the folder only at startup. A folder that disappears later was moved, and must not be created again.
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  } catch {
    // Ignore the error, because the first write reports the problem.
  }

  return {
    path,
    read() {
      try {
        return readCheckpointFile(path);
      } catch (error) {
        if (!optional || !isPermissionDenied(error)) throw error;
        unusable = true;
        skip(error);
        return null;
      }
    },
    async keep(note) {
      try {
        await writeInTurn(note);
      } catch (error) {
        if (optional) return skip(error);
        throw new StorageError(
          "unavailable",
          `the newest checkpoint could not be stored in ${path}, so it is not published: ${error instanceof Error ? error.message : String(error)}`,
          { cause: error },
        );
      }
    },
    isWriting: () => running !== null,
    setAside(size) {
      const aside = `${path}.before-rollback-${size}`;
      renameSync(path, aside);
      return aside;
    },
  };
}

/** Returns the size in a checkpoint; -1 if the string is not a checkpoint. */
function sizeOf(note: string): number {
  try {
    return parseCheckpoint(readNote(note).text).size;
  } catch {
    return -1;
  }
}

/**
 * Replaces the file's content atomically and durably. After a failed write, the old content is intact and no temporary
 * file remains.
 */
async function replaceFile(path: string, content: string): Promise<void> {
  // Use a unique name, because several processes can store their checkpoints at the same path.
  const part = `${path}.${randomUUID().slice(0, 8)}.new`;
  try {
    const file = await open(part, "wx", 0o600);
    try {
      await file.writeFile(content);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(part, path);
    await syncFolder(dirname(path));
  } catch (error) {
    // Ignore errors of the clean-up, because the first error is more informative.
    await rm(part, { force: true }).catch(() => {});
    throw error;
  }
}

/**
 * Reads the note in a file. Returns null if the file is missing or empty; a power failure can leave an empty file.
 * Throws if it cannot be read.
 */
export function readCheckpointFile(path: string): string | null {
  try {
    const note = readFileSync(path, "utf8");
    return note.trim() === "" ? null : note;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

/**
 * Syncs the folder of a file, which makes the file's new name durable. Ignores errors, because some systems and
 * runtimes cannot sync a folder.
 */
export async function syncFolder(path: string): Promise<void> {
  try {
    const folder = await open(path, "r");
    try {
      await folder.sync();
    } finally {
      await folder.close();
    }
  } catch {
    // The content of the file is synced in any case.
  }
}

/** Returns true if the system or Deno's permissions deny access. */
export function isPermissionDenied(error: unknown): boolean {
  const { code, name } = error as NodeJS.ErrnoException;
  return code === "EACCES" || code === "EPERM" || name === "NotCapable" || name === "PermissionDenied";
}

/** The entries of a store, and the keys that verify its checkpoints. */
interface StoredHistory {
  /** Number of entries in the store. */
  size: number;
  keys: LogKeys;
  verify: Vault["verify"];
  rootAt(size: number): Promise<Uint8Array>;
}

/**
 * Compares a store with a checkpoint that was stored outside it. `fault` is null if the store contains the signed tree.
 * Throws LedgerTampered if the note is invalid or the root of the stored tree cannot be read.
 */
export async function verifyCheckpointFile(
  { path, note }: { path: string; note: string },
  { size: stored, keys, verify, rootAt }: StoredHistory,
): Promise<{ size: number; root: Uint8Array; fault: string | null }> {
  try {
    const { size, root: stated, origin } = parseCheckpoint(readNote(note).text);
    const description = `the stored checkpoint ${path}`;
    try {
      const { root } = openLogCheckpoint(note, keys, verify);
      if (size > stored)
        return {
          size,
          root,
          fault: `the store has ${stored} entries, and ${description} was signed over ${size}: an older copy of the store was restored, or entries were lost`,
        };
      if (equalBytes(await rootAt(size), root)) return { size, root, fault: null };
      return {
        size,
        root,
        fault: `the store does not contain what ${description} was signed over (size ${size}): its history differs`,
      };
    } catch (error) {
      // The signer might be a key that was added to the log after this copy of the store was made.
      const isUnknown = error instanceof NoteError && error.reason === "unknown_key";
      if (!isUnknown || size <= stored || !keys.first.startsWith(`${origin}+`)) throw error;
      return {
        size,
        root: stated,
        fault: `the store has ${stored} entries, and ${description} says ${size} and is signed by a key that this store does not know: a copy from before the log's key was changed was restored, or entries were lost`,
      };
    }
  } catch (error) {
    throw new LedgerTampered([
      `the stored checkpoint ${path} cannot be used: ${error instanceof Error ? error.message : String(error)}; put the right file back, or move it away`,
    ]);
  }
}

interface CheckpointComparison extends StoredHistory {
  /** Whether to accept a store that does not contain the checkpoint outside it. */
  acceptRollback: boolean;
  log: Logger;
}

/**
 * Compares the store with the checkpoint outside it. Rejects with LedgerTampered if the store does not contain the
 * checkpoint, unless `acceptRollback` is set.
 */
export async function compareWithCheckpointFile(
  storedFile: CheckpointFile,
  comparison: CheckpointComparison,
): Promise<void> {
  const note = storedFile.read();
  if (note === null) return;
  const { size, root, fault } = await verifyCheckpointFile({ path: storedFile.path, note }, comparison);
  if (fault === null) return;
  if (!comparison.acceptRollback) {
    throw new LedgerTampered(
      [
        `${fault}. To continue with this store, start once with --accept-rollback. The later entries are then lost, and anyone who has proofs of them can show it`,
      ],
      { size, root },
    );
  }
  const aside = storedFile.setAside(size);
  comparison.log.warn("the store is older than the checkpoint outside it; continuing because of --accept-rollback", {
    size: comparison.size,
    kept_size: size,
    kept_as: aside,
  });
}
