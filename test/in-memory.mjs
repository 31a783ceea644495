/** Creates a folder in memory for the files of tests, because their stores sync thousands of times. */
import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { freemem } from "node:os";
import { join } from "node:path";

/** Linux's in-memory file system. */
const MEMORY = "/dev/shm";
/** Required free bytes: more than all tests of one run store at a time. */
const ENOUGH = 6 * 2 ** 30;

/**
 * Returns the path of a folder that is deleted when this process ends. Returns null if memory is low, or if the file
 * system does not permit execution.
 */
export function folderInMemory() {
  let folder = null;
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    if (Math.min(bavail * bsize, freemem()) < ENOUGH) return null;
    // A short name, because the path of a socket can have at most 107 characters.
    folder = mkdtempSync(join(MEMORY, "a-"));
    // If this process is root, Postgres runs as another user, in its own folder inside this one.
    chmodSync(folder, 0o711);
    const script = join(folder, "script");
    writeFileSync(script, "#!/bin/sh\n", { mode: 0o755 });
    if (spawnSync(script).status !== 0) throw new Error("nothing may be executed there");
  } catch {
    if (folder !== null) rmSync(folder, { recursive: true, force: true });
    return null;
  }
  process.once("exit", () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}
