/**
 * Finds the Codex program that started this hook, because the meaning of its payload depends on its version. This file
 * has few imports, because the launcher loads it.
 */
import { readFileSync, readlinkSync } from "node:fs";
import { basename } from "node:path";

/** Maximum number of ancestors to inspect: Codex, and the shells between Codex and this hook. */
const MAX_ANCESTORS = 6;
const SHELL = /^(?:a|ba|c|da|fi|k|mk|tc|z)?sh$|^ksh93$|^busybox$/;

/**
 * Returns the executable of the Codex process that started this hook; null if unknown. The result can be trusted,
 * because none of the hook's ancestors was started by the agent's commands.
 */
export function callingCodexPath(): string | null {
  if (process.platform !== "linux") return null;
  try {
    let pid = process.ppid;
    for (let i = 0; i < MAX_ANCESTORS && pid > 1; i++) {
      // If the file was replaced while the program runs, the link ends in "(deleted)", and the file on disk is a
      // different version.
      const path = readlinkSync(`/proc/${pid}/exe`);
      const name = basename(path);
      if (name === "codex") return path;
      // Stop at any other program, because it may be an older Codex with a different name. The search could otherwise
      // reach a newer Codex that had started the older Codex.
      if (!SHELL.test(name)) return null;
      pid = Number(/^PPid:\s*(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
    }
  } catch {
    // The process has exited, or belongs to a different user.
  }
  return null;
}
