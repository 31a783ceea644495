/** Which program asks, where that says what its payload means. Loaded by the starter, so it imports next to nothing. */
import { readFileSync, readlinkSync } from "node:fs";
import { basename } from "node:path";

/** How many shells a host starts its hooks through at most. */
const MAX_ANCESTORS = 6;
const SHELL = /^(?:a|ba|c|da|fi|k|mk|tc|z)?sh$|^ksh93$|^busybox$/;

/**
 * The file that the Codex runs from that has started this process; null where that cannot be told. Who its model is says
 * nothing here: what stands above a hook's process no command of the agent's has started.
 */
export function callingCodexPath(): string | null {
  if (process.platform !== "linux") return null;
  try {
    let pid = process.ppid;
    for (let i = 0; i < MAX_ANCESTORS && pid > 1; i++) {
      // Of a file that was replaced meanwhile it ends in "(deleted)": what is there now is another version.
      const path = readlinkSync(`/proc/${pid}/exe`);
      const name = basename(path);
      if (name === "codex") return path;
      // An older Codex of another name may run below a newer one, which is not who asks.
      if (!SHELL.test(name)) return null;
      pid = Number(/^PPid:\s*(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
    }
  } catch {
    // Not ours to look at.
  }
  return null;
}
