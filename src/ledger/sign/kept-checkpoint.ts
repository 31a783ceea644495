/**
 * The newest signed checkpoint, kept in a file beside the store. A store cannot tell that it was replaced by an
 * older copy of itself; whoever remembers a later checkpoint can.
 */
import { randomUUID } from "node:crypto";
import { mkdirSync, readFileSync, renameSync } from "node:fs";
import { open, readFile, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Config } from "../../config/index.ts";
import type { Vault } from "../../contract/core-host.ts";
import type { Logger } from "../../contract/host.ts";
import { StorageError } from "../../contract/storage.ts";
import { NoteError, parseCheckpoint, readNote } from "../../domain/checkpoint.ts";
import { equalBytes, sha256Hex, utf8 } from "../../domain/hash.ts";
import { openLogCheckpoint, type LogKeys } from "../../domain/log-keys.ts";
import { LedgerTampered } from "../tampered.ts";

/** The file in the data folder, unless the configuration names another one. */
export function checkpointFile({ data, ledger }: Pick<Config, "data" | "ledger">): string {
  return ledger.checkpoint_file ?? join(data, "checkpoint");
}

/** In the state folder, which keeps the checkpoints of all logs of a machine: named by the log's first key. */
export function stateCheckpointPath(stateFolder: string, firstKey: string): string {
  return join(stateFolder, `${sha256Hex(utf8(firstKey)).slice(0, 32)}.checkpoint`);
}

export interface KeptCheckpoint {
  readonly path: string;
  /** The note as it stands; null when there is none. Throws when it cannot be read. */
  read(): string | null;
  /**
   * Writes the note durably, unless another process keeps a newer one at this path. Rejects with StorageError where that
   * is impossible: then the note must not be handed out.
   */
  keep(note: string): Promise<void>;
  /** Puts the present one aside, under a name that says what it was. Returns that name. */
  setAside(size: number): string;
}

/** @param optional the operator did not ask for this path: where it cannot be used the service logs that once and goes on */
export function keepCheckpoint(
  path: string,
  log: Logger,
  { optional = false }: { optional?: boolean } = {},
): KeptCheckpoint {
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

  async function write(note: string): Promise<void> {
    if (note === written || unusable) return;
    try {
      if (sizeOf(await readFile(path, "utf8").catch(() => "")) > sizeOf(note)) return;
      await replaceFile(path, note);
      written = note;
    } catch (error) {
      if (optional) return skip(error);
      throw new StorageError(
        "unavailable",
        `the newest checkpoint could not be kept in ${path}, and so it is not handed out: ${error instanceof Error ? error.message : String(error)}`,
        { cause: error },
      );
    }
  }

  // Only at the start: a folder that disappears later was moved, and the checkpoint must not appear at its old place.
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  } catch {
    // The first write reports it.
  }

  return {
    path,
    read() {
      try {
        return readCheckpointFile(path);
      } catch (error) {
        if (!optional || !isForbidden(error)) throw error;
        skip(error);
        return null;
      }
    },
    keep(note) {
      const written = writing.then(() => write(note));
      writing = written.catch(() => undefined);
      return written;
    },
    setAside(size) {
      const aside = `${path}.before-rollback-${size}`;
      renameSync(path, aside);
      return aside;
    },
  };
}

/** Size that a checkpoint states; -1 for a text that is none. */
function sizeOf(note: string): number {
  try {
    return parseCheckpoint(readNote(note).text).size;
  } catch {
    return -1;
  }
}

/** Replaces the file's content in one step, durably. A failed write leaves the old content and no other file. */
async function replaceFile(path: string, content: string): Promise<void> {
  // The name is this process's alone, because several processes may keep their checkpoint at one path.
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
    // The first error says more than one from cleaning up.
    await rm(part, { force: true }).catch(() => {});
    throw error;
  }
}

/** Null when there is no such file, or an empty one, which a power loss can leave. Throws when it cannot be read. */
export function readCheckpointFile(path: string): string | null {
  try {
    const note = readFileSync(path, "utf8");
    return note.trim() === "" ? null : note;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

/** Makes the new name durable. Some systems and runtimes cannot sync a folder, and do not need to. */
async function syncFolder(path: string): Promise<void> {
  try {
    const folder = await open(path, "r");
    try {
      await folder.sync();
    } finally {
      await folder.close();
    }
  } catch {
    // The file itself is synced.
  }
}

/** By the system, or by Deno's permissions. */
export function isForbidden(error: unknown): boolean {
  const { code, name } = error as NodeJS.ErrnoException;
  return code === "EACCES" || code === "EPERM" || name === "NotCapable" || name === "PermissionDenied";
}

/** What a store must contain because it was signed. */
export interface StoredHistory {
  /** Entries that the store holds. */
  size: number;
  keys: LogKeys;
  verify: Vault["verify"];
  rootAt(size: number): Promise<Uint8Array>;
}

/**
 * Compares a store with a checkpoint that was kept outside of it. `fault` is null when the store contains what was
 * signed. Throws LedgerTampered for a note that cannot be used.
 */
export async function checkKept(
  { path, note }: { path: string; note: string },
  { size: stored, keys, verify, rootAt }: StoredHistory,
): Promise<{ size: number; root: Uint8Array; fault: string | null }> {
  try {
    const { size, root: stated, origin } = parseCheckpoint(readNote(note).text);
    const place = `the stored checkpoint ${path}`;
    try {
      const { root } = openLogCheckpoint(note, keys, verify);
      if (size > stored)
        return {
          size,
          root,
          fault: `the store holds ${stored} entries, and ${place} was signed over ${size}: an older copy of the store was put back, or entries were lost`,
        };
      if (equalBytes(await rootAt(size), root)) return { size, root, fault: null };
      return {
        size,
        root,
        fault: `the store does not contain what ${place} was signed over (size ${size}): it is another history`,
      };
    } catch (error) {
      // By a key that followed after this copy of the store was made, perhaps.
      const isUnknown = error instanceof NoteError && error.reason === "unknown_key";
      if (!isUnknown || size <= stored || !keys.first.startsWith(`${origin}+`)) throw error;
      return {
        size,
        root: stated,
        fault: `the store holds ${stored} entries, and ${place} says ${size} and is signed by a key that this store does not know: a copy from before the log's key was changed was put back, or entries were lost`,
      };
    }
  } catch (error) {
    throw new LedgerTampered([
      `the stored checkpoint ${path} cannot be used: ${error instanceof Error ? error.message : String(error)}; put the right file back, or move it away`,
    ]);
  }
}

export interface Comparison extends StoredHistory {
  /** Goes on with a store that does not hold it. */
  acceptRollback: boolean;
  log: Logger;
}

/** Rejects with LedgerTampered when the store does not hold what was signed and kept, unless that is accepted. */
export async function compareWithKept(kept: KeptCheckpoint, comparison: Comparison): Promise<void> {
  const note = kept.read();
  if (note === null) return;
  const { size, root, fault } = await checkKept({ path: kept.path, note }, comparison);
  if (fault === null) return;
  if (!comparison.acceptRollback) {
    throw new LedgerTampered(
      [
        `${fault}. To go on with this store, start once with --accept-rollback: what came after is gone, and who holds proofs of it can show so`,
      ],
      { size, root },
    );
  }
  const aside = kept.setAside(size);
  comparison.log.warn(
    "the store is older than the checkpoint that was kept; going on because --accept-rollback was given",
    {
      size: comparison.size,
      kept_size: size,
      kept_as: aside,
    },
  );
}
