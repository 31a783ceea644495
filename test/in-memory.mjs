/** Where the tests put what they write: in memory, where there is enough of it. */
import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { freemem } from "node:os";
import { join } from "node:path";

/** Linux's file system in memory. */
const MEMORY = "/dev/shm";
/** More than all tests of one run keep at a time. */
const ENOUGH = 6 * 2 ** 30;

/**
 * Makes TMPDIR a folder in memory until this process ends: stores sync thousands of times, with everything on and
 * nothing to wait for. Leaves it as it is where memory is short, or where nothing may be executed there.
 */
export function workInMemory() {
  const folder = fitFolder();
  if (folder === null) return;
  process.env["TMPDIR"] = folder;
  process.once("exit", () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(1));
}

function fitFolder() {
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
    if (spawnSync(script).status === 0) return folder;
  } catch {
    // No Linux, or not ours to write to.
  }
  if (folder !== null) rmSync(folder, { recursive: true, force: true });
  return null;
}
