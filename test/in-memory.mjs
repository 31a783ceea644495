/** A folder in memory for what tests write: their stores sync thousands of times, with everything on and nothing to wait for. */
import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { freemem } from "node:os";
import { join } from "node:path";

/** Linux's file system in memory. */
const MEMORY = "/dev/shm";
/** More than all tests of one run keep at a time. Bytes. */
const ENOUGH = 6 * 2 ** 30;

/** Its path, until this process ends; null where memory is short, or where nothing may be executed in it. */
export function folderInMemory() {
  let folder = null;
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    if (Math.min(bavail * bsize, freemem()) < ENOUGH) return null;
    // Short: a socket's whole path has 107 characters.
    folder = mkdtempSync(join(MEMORY, "a-"));
    // As root, Postgres runs as another user, in a folder of its own in here.
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
