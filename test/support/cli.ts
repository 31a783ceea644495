/** Runs the `assent` command line, in a child process or inside the test process. */
import { spawn } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { TestContext } from "node:test";
import { run } from "../../src/cli/main.ts";
import { ASSENT, ROOT, stateBeside } from "./process.ts";
import { temporaryFolder } from "./temporary-folder.ts";

export interface Run {
  code: number | null;
  out: string;
  err: string;
}

export interface RunOptions {
  cwd?: string;
  env?: Record<string, string>;
  input?: string;
}

/** Runs `assent` in a child process. It has no API key and no service URL unless `options.env` sets them. */
export function assent(args: string[], options: RunOptions = {}): Promise<Run> {
  return runProgram(process.execPath, [...ASSENT, ...args], options);
}

/**
 * Runs `assent` inside this process, which is about 100 times faster than a child process. For tests that depend only
 * on the arguments.
 */
export async function assentInProcess(...args: string[]): Promise<Run> {
  let [out, err] = ["", ""];
  const code = await run(args, {
    out: (text) => (out += `${text}\n`),
    err: (text) => (err += `${text}\n`),
    fancy: false,
    watched: false,
  });
  return { code, out, err };
}

/**
 * Runs `assent` inside this process, in another working folder and with environment variables set. Nothing else in this
 * process may depend on them during the call, so calls cannot overlap.
 */
export async function assentInProcessWith(
  { cwd, env = {} }: Omit<RunOptions, "input">,
  ...args: string[]
): Promise<Run> {
  const folder = process.cwd();
  const before = Object.keys(env).map((name) => [name, process.env[name]] as const);
  Object.assign(process.env, env);
  if (cwd !== undefined) process.chdir(cwd);
  try {
    return await assentInProcess(...args);
  } finally {
    process.chdir(folder);
    for (const [name, value] of before)
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
  }
}

export const assentInProcessWithEnv = (env: Record<string, string>, ...args: string[]): Promise<Run> =>
  assentInProcessWith({ env }, ...args);

export const assentInProcessInFolder = (cwd: string, ...args: string[]): Promise<Run> =>
  assentInProcessWith({ cwd }, ...args);

export function runProgram(
  name: string,
  args: string[],
  { cwd = ROOT, env = {}, input = "" }: RunOptions = {},
): Promise<Run> {
  return new Promise((resolve, reject) => {
    const child = spawn(name, args, {
      cwd,
      env: { ...process.env, ASSENT_API_KEY: "", ASSENT_URL: "", ASSENT_POLICIES: "", ...stateBeside(env), ...env },
    });
    let out = "";
    let err = "";
    child.stdout.on("data", (chunk: Buffer) => (out += chunk.toString()));
    child.stderr.on("data", (chunk: Buffer) => (err += chunk.toString()));
    // A program that does not read its input might exit before all of it is written.
    child.stdin.on("error", () => undefined);
    child.stdin.end(input);
    child.once("error", reject);
    child.once("close", (code) => resolve({ code, out, err }));
  });
}

export type Files = Record<string, string | Uint8Array>;

/** Creates a temporary folder with these files, and deletes it after the test. */
export function folderWith(t: Pick<TestContext, "after">, files: Files): string {
  const folder = temporaryFolder("assent-cli-");
  t.after(() => {
    try {
      rmSync(folder, { recursive: true, force: true });
    } catch {
      // The hook that stops a service runs after this one, so the service can still write to the folder. An error here
      // would skip that hook and leave the service running. The test runner deletes the remaining files.
    }
  });
  writeFiles(folder, files);
  return folder;
}

export function writeFiles(folder: string, files: Files): void {
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), content);
  }
}
