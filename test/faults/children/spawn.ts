/** Starts the roles of storage.ts in processes of their own. */
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { rmSync } from "node:fs";
import { createInterface } from "node:readline";
import { after } from "node:test";
import { NODE, scriptOf } from "../../support/runtimes.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const SCRIPT = scriptOf("test/faults/children/storage");

export interface Player {
  process: ChildProcess;
  /** What it says, line by line; ends with the process. */
  lines: AsyncIterator<string>;
  next(): Promise<string>;
  /** SIGKILL, and wait until it is gone. */
  kill(): Promise<void>;
}

/** `under`: another program that runs it, such as strace; `kill` then kills that one. */
export function start(role: string, path: string, under: readonly string[] = []): Player {
  const words = [...under, process.execPath, ...NODE, SCRIPT, role, path];
  const child = spawn(words[0] as string, words.slice(1), { stdio: ["ignore", "pipe", "inherit"] });
  const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    process: child,
    lines,
    async next() {
      const { value, done } = await lines.next();
      if (done === true) throw new Error(`the ${role} process ended without saying more`);
      return value;
    },
    async kill() {
      child.kill("SIGKILL");
      await gone;
    },
  };
}

/** Runs a role to its end under other programs, such as strace. */
export function play(
  role: string,
  path: string,
  under: readonly string[] = [],
): { status: number | null; stdout: string; stderr: string } {
  const words = [...under, process.execPath, ...NODE, SCRIPT, role, path];
  return spawnSync(words[0] as string, words.slice(1), { encoding: "utf8" });
}

/** Why this machine cannot run something, or false: what `skip` takes. */
export function lacks(why: string, command: string, ...args: string[]): string | false {
  return spawnSync(command, args).status === 0 ? false : why;
}

/** The role as words of a shell. */
export function shellWords(role: string, path: string): string {
  return [process.execPath, ...NODE, SCRIPT, role, path].map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(" ");
}

/** Creates a folder for a store, and deletes it after the tests of the file. */
export function storeFolder(): string {
  const folder = temporaryFolder("assent-storage-");
  after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
