/**
 * Finds the Codex program that started this hook, because the meaning of its payload depends on its version. The
 * launcher loads this file, so it imports almost nothing.
 */
import { readFileSync, readlinkSync } from "node:fs";
import { basename } from "node:path";

/** How many shells between the host and its hook are skipped. */
const MAX_ANCESTORS = 6;
const SHELL = /^(?:a|ba|c|da|fi|k|mk|tc|z)?sh$|^ksh93$|^busybox$/;

/**
 * Returns the executable of the Codex process that started this hook; null if unknown. It can be trusted, because the
 * agent's commands did not start the ancestors of a hook.
 */
export function callingCodexPath(): string | null {
  if (process.platform !== "linux") return null;
  try {
    let pid = process.ppid;
    for (let i = 0; i < MAX_ANCESTORS && pid > 1; i++) {
      // If the file was replaced while it runs, the link ends in "(deleted)", and the file on disk is another
      // version.
      const path = readlinkSync(`/proc/${pid}/exe`);
      const name = basename(path);
      if (name === "codex") return path;
      // Stop at any other program: an older Codex under another name may have been started by a newer one, which did
      // not start this hook.
      if (!SHELL.test(name)) return null;
      pid = Number(/^PPid:\s*(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
    }
  } catch {
    // The process belongs to another user.
  }
  return null;
}
