/** Runs a program once, with bounded time, output and environment. No shell is involved. */
import { type ChildProcess, spawn } from "node:child_process";
import { decodeUtf8 } from "../../src/core.ts";

/** Maximum size of standard output in bytes. */
const MAX_OUTPUT = 65_536;
/** Maximum number of characters of standard error that the error message contains. */
const MAX_ERRORS = 2_000;

export interface Program {
  /** The program and its arguments. */
  command: readonly string[];
  /** The environment of the program, in addition to `PATH`, `HOME` and `LANG` of the service. */
  environment: Readonly<Record<string, string>>;
}

/** Called after each chunk, with the complete standard output so far. Calls `finish` to end the program. */
type OnOutput = (text: string, send: (line: string) => void, finish: () => void) => void;

/**
 * Runs the program, writes `input` to its standard input and resolves to its standard output. Rejects if the program
 * exits with a non-zero code, if its output is larger than 64 KiB or not UTF-8, or if `signal` aborts. In all cases,
 * kills what is left of the program and its children.
 * @param onOutput if given, standard input stays open, and this function decides when the program has finished. Rejects
 * if the program exits before that
 */
export function runCommand(
  { command, environment }: Program,
  input: string,
  signal: AbortSignal,
  onOutput?: OnOutput,
): Promise<string> {
  const [file = "", ...args] = command;
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason as Error);
    // Start a process group, so that the program's children can also be killed. The environment contains none of the
    // service's secrets.
    const child = spawn(file, args, {
      detached: true,
      stdio: ["pipe", "pipe", "pipe"],
      env: { ...baseEnvironment(), ...environment },
    });
    const chunks: Buffer[] = [];
    let errors = "";
    let size = 0;
    const end = (settle: () => void): void => {
      signal.removeEventListener("abort", onAbort);
      killGroup(child);
      settle();
    };
    const fail = (error: Error): void => end(() => reject(error));
    const succeed = (): void => {
      const text = decodeUtf8(Buffer.concat(chunks));
      end(() => (text === null ? reject(new Error(`${file} wrote something other than UTF-8`)) : resolve(text)));
    };
    const onAbort = (): void => fail(signal.reason as Error);
    signal.addEventListener("abort", onAbort, { once: true });
    child.on("error", (error) => fail(error));
    child.stdin.on("error", () => undefined);
    child.stdout.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size > MAX_OUTPUT) return fail(new Error(`${file} wrote more than ${MAX_OUTPUT} bytes`));
      chunks.push(chunk);
      onOutput?.(Buffer.concat(chunks).toString("utf8"), (line) => child.stdin.write(line), succeed);
    });
    child.stderr.on("data", (chunk: Buffer) => {
      if (errors.length < MAX_ERRORS) errors += chunk.toString("utf8").slice(0, MAX_ERRORS - errors.length);
    });
    child.on("close", (code, by) => {
      if (code === 0 && onOutput === undefined) return succeed();
      const how = code === null ? `was killed by ${by ?? "a signal"}` : `exited with code ${code}`;
      fail(new Error(`${file} ${how}${errors === "" ? "" : `: ${errors.trim()}`}`));
    });
    if (onOutput === undefined) child.stdin.end(input);
    else child.stdin.write(input);
  });
}

function baseEnvironment(): Record<string, string> {
  const { PATH, HOME, LANG } = process.env;
  return Object.fromEntries(Object.entries({ PATH, HOME, LANG }).filter(([, value]) => value !== undefined)) as Record<
    string,
    string
  >;
}

function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // The program has already ended.
  }
}
