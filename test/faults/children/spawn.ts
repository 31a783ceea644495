/** Starts the roles of storage.ts in child processes. */
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { rmSync } from "node:fs";
import { createInterface } from "node:readline";
import { after } from "node:test";
import { NODE, scriptOf } from "../../support/runtimes.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const SCRIPT = scriptOf("test/faults/children/storage");

export interface Player {
  process: ChildProcess;
  /** Lines of standard output. The iterator ends with the process. */
  lines: AsyncIterator<string>;
  next(): Promise<string>;
  /** Sends SIGKILL and waits until the process has exited. */
  kill(): Promise<void>;
}

/**
 * Starts a role. @param under command line of a program that runs the role, such as strace; `kill` then kills that
 * program
 */
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

/** Runs a role until it exits. @param under programs that run the role, such as strace */
export function play(
  role: string,
  path: string,
  under: readonly string[] = [],
): { status: number | null; stdout: string; stderr: string } {
  const words = [...under, process.execPath, ...NODE, SCRIPT, role, path];
  return spawnSync(words[0] as string, words.slice(1), { encoding: "utf8" });
}

/** Returns a value for the `skip` option of a test: false if the command succeeds, otherwise `why`. */
export function lacks(why: string, command: string, ...args: string[]): string | false {
  return spawnSync(command, args).status === 0 ? false : why;
}

/** Returns the command line of a role, quoted for a shell. */
export function shellWords(role: string, path: string): string {
  return [process.execPath, ...NODE, SCRIPT, role, path].map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(" ");
}

/** Creates a folder for a store, and deletes it after the tests of the file. */
export function storeFolder(): string {
  const folder = temporaryFolder("assent-storage-");
  after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
