/** Whether a Codex says in which folder a command runs: its model may choose another one than the session's. */
import { execFile } from "node:child_process";
import { stat } from "node:fs/promises";

/** By the file and its state: a program is asked once. */
const verdicts = new Map<string, boolean>();
const PATIENCE_MS = 5000;

/** Since 0.169.0 `cwd` of its payload is that folder; before, it was the session's. */
function tellsFolder(version: string): boolean {
  const [, major, minor, , early] = /^codex\S*\s+(\d+)\.(\d+)\.(\d+)(-\S+)?\s*$/.exec(version) ?? [];
  if (major === undefined) return false;
  return Number(major) > 0 || Number(minor) > 169 || (Number(minor) === 169 && early === undefined);
}

/** @param program the file that it runs from */
export async function isTellingCodex(program: string | null): Promise<boolean> {
  if (program === null) return false;
  try {
    const { dev, ino, size, mtimeMs } = await stat(program);
    const key = `${program} ${dev} ${ino} ${size} ${mtimeMs}`;
    const before = verdicts.get(key);
    if (before !== undefined) return before;
    const tells = tellsFolder(await versionOf(program));
    if (verdicts.size > 100) verdicts.clear();
    verdicts.set(key, tells);
    return tells;
  } catch {
    return false;
  }
}

function versionOf(program: string): Promise<string> {
  return new Promise((resolve, reject) => {
    // Nothing of the agent's surroundings may answer in its place.
    execFile(program, ["--version"], { timeout: PATIENCE_MS, env: {}, cwd: "/", encoding: "utf8" }, (error, out) =>
      error === null ? resolve(out) : reject(error),
    );
  });
}
