/**
 * Determines whether a Codex version reports the folder in which each command runs. The model can choose a folder other
 * than the session's.
 */
import { stat } from "node:fs/promises";
import { runProgram } from "../../../src/programs/run-program.ts";

/** Results, keyed by executable and file state, so that each executable is run only once. */
const resultsByFile = new Map<string, boolean>();
const VERSION_TIMEOUT_MS = 5000;

/** Since 0.169.0, `cwd` in the payload is the command's folder. In earlier versions, it was the session's folder. */
function versionReportsFolder(version: string): boolean {
  const [, major, minor, , preRelease] = /^codex\S*\s+(\d+)\.(\d+)\.(\d+)(-\S+)?\s*$/.exec(version) ?? [];
  if (major === undefined) return false;
  return Number(major) > 0 || Number(minor) > 169 || (Number(minor) === 169 && preRelease === undefined);
}

/**
 * Resolves to true if Codex reports the folder of each command.
 * @param program executable of the Codex process; null if unknown
 */
export async function codexReportsFolder(program: string | null): Promise<boolean> {
  if (program === null) return false;
  try {
    const { dev, ino, size, mtimeMs } = await stat(program);
    const key = `${program} ${dev} ${ino} ${size} ${mtimeMs}`;
    const cached = resultsByFile.get(key);
    if (cached !== undefined) return cached;
    const reportsFolder = versionReportsFolder(await runVersionCommand(program));
    if (resultsByFile.size > 100) resultsByFile.clear();
    resultsByFile.set(key, reportsFolder);
    return reportsFolder;
  } catch {
    return false;
  }
}

async function runVersionCommand(program: string): Promise<string> {
  // Use an empty environment and the folder `/`, so that the agent cannot influence the output.
  const { code, stdout } = await runProgram(program, ["--version"], {
    env: {},
    cwd: "/",
    timeoutMs: VERSION_TIMEOUT_MS,
    maxOutput: 10_000,
  });
  if (code !== 0) throw new Error(`${program} exited with ${code}`);
  return stdout.toString("utf8");
}
