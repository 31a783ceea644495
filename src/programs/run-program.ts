/**
 * Starts other programs. Each has its own process group, which is killed as a whole. If only the direct child were
 * killed, its children would run on and hold its pipes open: `git fetch`, for example, lets git-remote-https connect.
 */
import { type ChildProcess, spawn, spawnSync, type SpawnOptions } from "node:child_process";
import type { Readable, Writable } from "node:stream";

/** Number of characters of standard error that are kept, from its end. */
const MAX_ERRORS = 4_000;
/**
 * Time limit for reading the rest of the output after the program has exited. A process that left the group, such as a
 * daemon, can hold the pipes open. Milliseconds.
 */
const DRAIN_MS = 500;
/** Time limit for a program to exit after its input has ended, and again after SIGTERM. Milliseconds. */
const EXIT_TIMEOUT_MS = 2_000;

type Variables = Readonly<Record<string, string | undefined>>;

interface ProgramOptions {
  /** The complete environment of the program. */
  env: Variables;
  cwd?: string;
  /** Whether `file` is a command line for the shell. Default: no shell is involved. */
  shell?: boolean;
}

interface RunOptions extends ProgramOptions {
  /** Standard input. Default: empty. */
  input?: string | Uint8Array;
  /** Time limit for the whole run. */
  timeoutMs?: number;
  signal?: AbortSignal;
  /** Maximum size of standard output in bytes. */
  maxOutput: number;
  /**
   * Called after each chunk, with the complete standard output so far. Standard input then stays open, `send` writes to
   * it, and `finish` ends the program.
   */
  onOutput?(output: Buffer, send: (text: string) => void, finish: () => void): void;
  /**
   * Ends the program soon after this process has ended for any reason. For programs that could otherwise run forever,
   * such as `git fetch` from a server that sends one byte per second. Has no effect on Windows.
   */
  endsWithParent?: boolean;
  /**
   * Keeps the program in the process group of this process, so that it can use the terminal and receives the signals of
   * the group. Only the program itself is then killed, and not its children.
   */
  sharesGroup?: boolean;
}

export interface ProgramResult {
  /** Exit code; null if a signal ended the program, or if `finish` was called. */
  code: number | null;
  endedBy: NodeJS.Signals | null;
  stdout: Buffer;
  /** The end of standard error. */
  stderr: string;
}

/** Thrown if a program did not start, exceeded its time limit or printed too much. */
export class ProgramError extends Error {
  readonly reason: "not-found" | "not-started" | "timeout" | "output";
  constructor(reason: ProgramError["reason"], message: string) {
    super(message);
    this.name = "ProgramError";
    this.reason = reason;
  }
}

/**
 * Starts the program in its arguments, and a loop that kills the process group once the parent process no longer
 * exists.
 */
const GUARD = `(while kill -0 "$PPID"; do sleep 1 || exit; done; kill -9 0) </dev/null >/dev/null 2>&1 & exec "$@"`;

/** Processes to kill when this process exits. */
const running = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of running) kill(child, "SIGKILL");
});

/**
 * Runs a program and resolves when it has exited with any exit code. Rejects with ProgramError, or with the reason of
 * `signal`. Before it settles, kills what is left of the program's group.
 * @example
 * const { code, stdout } = await runProgram("git", ["--version"], { env: process.env, maxOutput: 1_000, timeoutMs: 5_000 });
 */
export function runProgram(file: string, args: readonly string[], options: RunOptions): Promise<ProgramResult> {
  const { input = "", timeoutMs, signal, maxOutput, onOutput, sharesGroup = false } = options;
  const isGuarded = options.endsWithParent === true && process.platform !== "win32";
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) return reject(signal.reason as Error);
    const [program, words] = isGuarded ? ["/bin/sh", ["-c", GUARD, "sh", file, ...args]] : [file, args];
    const child = start(program, words, options, { detached: !sharesGroup, stdio: ["pipe", "pipe", "pipe"] });
    const chunks: Buffer[] = [];
    let size = 0;
    let stderr = "";
    let drain: ReturnType<typeof setTimeout> | undefined;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const end = (settle: () => void): void => {
      clearTimeout(timer);
      clearTimeout(drain);
      signal?.removeEventListener("abort", onAbort);
      if (running.delete(child)) kill(child, "SIGKILL");
      release(child);
      settle();
    };
    const fail = (error: Error): void => end(() => reject(error));
    const succeed = (): void => {
      if (isGuarded && child.exitCode === 127 && /exec: .*not found/.test(stderr))
        return fail(new ProgramError("not-found", `${file} is not installed`));
      end(() => resolve({ code: child.exitCode, endedBy: child.signalCode, stdout: Buffer.concat(chunks), stderr }));
    };
    const onAbort = (): void => fail(signal?.reason as Error);
    signal?.addEventListener("abort", onAbort, { once: true });
    const onTimeout = (): void => fail(new ProgramError("timeout", `${file} did not exit within ${timeoutMs} ms`));
    if (timeoutMs !== undefined) timer = setTimeout(onTimeout, timeoutMs);
    child.on("error", (error) => fail(toProgramError(file, error, options.cwd)));
    child.once("exit", () => {
      clearTimeout(timer);
      if (running.delete(child)) kill(child, "SIGKILL");
      // If the timer is late, the output that has arrived is read before the callback of setImmediate runs.
      drain = setTimeout(() => setImmediate(succeed), DRAIN_MS);
    });
    child.once("close", succeed);
    child.stdout?.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size > maxOutput) return fail(new ProgramError("output", `${file} printed more than ${maxOutput} bytes`));
      chunks.push(chunk);
      drain?.refresh();
      onOutput?.(Buffer.concat(chunks), (text) => child.stdin?.write(text), succeed);
    });
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      stderr = (stderr + text).slice(-MAX_ERRORS);
    });
    // The program may exit before it has read all of its input.
    child.stdin?.on("error", () => undefined);
    if (onOutput === undefined) child.stdin?.end(input);
    else child.stdin?.write(input);
  });
}

/**
 * Runs a program synchronously, for callers that cannot be asynchronous. The program must not start others. Returns its
 * standard output; null if it fails, exceeds its time limit or prints too much.
 */
export function readProgramOutput(
  file: string,
  args: readonly string[],
  { env, cwd, timeoutMs, maxOutput }: ProgramOptions & { timeoutMs: number; maxOutput: number },
): Buffer | null {
  const { status, stdout } = spawnSync(file, args, {
    env: env as NodeJS.ProcessEnv,
    timeout: timeoutMs,
    killSignal: "SIGKILL",
    maxBuffer: maxOutput,
    windowsHide: true,
    ...(cwd === undefined ? {} : { cwd }),
  });
  return status === 0 ? stdout : null;
}

/** A program that runs until its input ends. */
export interface StartedProgram {
  stdin: Writable;
  stdout: Readable;
  /** Null if the program writes to the standard error of this process. */
  stderr: Readable | null;
  /** Resolves to the exit code, or to the name of the signal that ended the program. */
  exited: Promise<number | string>;
  /**
   * Ends the program's input and resolves when the program has exited. A program that does not exit gets SIGTERM, and
   * then SIGKILL.
   */
  end(): Promise<void>;
}

/** Starts a program and resolves when it runs. Rejects with ProgramError. */
export async function startProgram(
  file: string,
  args: readonly string[],
  options: ProgramOptions & { stderr: "pipe" | "inherit" },
): Promise<StartedProgram> {
  const child = start(file, args, options, { detached: true, stdio: ["pipe", "pipe", options.stderr] });
  const exited = new Promise<number | string>((resolve) => {
    child.once("exit", (code, by) => {
      if (running.delete(child)) kill(child, "SIGKILL");
      // The streams then end, even if a process that left the group holds the pipes open.
      setTimeout(() => setImmediate(() => release(child)), DRAIN_MS);
      resolve(code ?? by ?? "a signal");
    });
  });
  await new Promise<void>((resolve, reject) => {
    child.once("spawn", resolve);
    child.on("error", (error) => reject(toProgramError(file, error, options.cwd)));
  });
  const { stdin, stdout, stderr } = child as ChildProcess & { stdin: Writable; stdout: Readable };
  stdin.on("error", () => undefined);
  return {
    stdin,
    stdout,
    stderr,
    exited,
    async end() {
      stdin.end();
      const timers = (["SIGTERM", "SIGKILL"] as const).map((name, i) =>
        setTimeout(() => kill(child, name), (i + 1) * EXIT_TIMEOUT_MS),
      );
      await settleWithin(exited, 3 * EXIT_TIMEOUT_MS);
      for (const timer of timers) clearTimeout(timer);
      release(child);
    },
  };
}

/**
 * Runs a program that uses the terminal, or the standard input and output, of this process. Resolves when it has exited.
 * Passes SIGTERM and SIGHUP on. The terminal sends SIGINT to both, and the program decides. Rejects with ProgramError.
 * @param user the user that the program runs as. Default: the user of this process
 */
export async function runInForeground(
  file: string,
  args: readonly string[],
  options: ProgramOptions,
  user: { uid: number; gid: number } | null = null,
): Promise<Pick<ProgramResult, "code" | "endedBy">> {
  const child = start(file, args, options, { stdio: "inherit", ...user });
  const passOn = (signal: NodeJS.Signals): void => void child.kill(signal);
  const ignore = (): void => undefined;
  for (const signal of ["SIGTERM", "SIGHUP"] as const) process.on(signal, passOn);
  process.on("SIGINT", ignore);
  try {
    return await new Promise((resolve, reject) => {
      child.once("exit", (code, endedBy) => resolve({ code, endedBy }));
      child.once("error", (error) => reject(toProgramError(file, error, options.cwd)));
    });
  } finally {
    running.delete(child);
    for (const signal of ["SIGTERM", "SIGHUP"] as const) process.off(signal, passOn);
    process.off("SIGINT", ignore);
  }
}

/** A program that continues to run after this process has exited. */
export interface BackgroundProgram {
  pid: number | undefined;
  /** Returns true if the program has exited, or could not be started. */
  hasExited(): boolean;
  /** Asks the program to stop, and kills its group if it does not. */
  end(): Promise<void>;
}

/**
 * Starts a program in the background.
 * @param output file descriptor of the program's output. Default: the output is discarded
 */
export function startBackgroundProgram(
  file: string,
  args: readonly string[],
  options: ProgramOptions & { output?: number },
): BackgroundProgram {
  const { output = "ignore" } = options;
  const child = start(file, args, options, { detached: true, stdio: ["ignore", output, output] });
  // It outlives this process.
  running.delete(child);
  let hasExited = false;
  const exited = new Promise<void>((resolve) => {
    for (const event of ["error", "exit"])
      child.once(event, () => {
        hasExited = true;
        resolve();
      });
  });
  if (child.pid !== undefined) child.unref();
  return {
    pid: child.pid,
    hasExited: () => hasExited,
    async end() {
      if (hasExited) return;
      kill(child, "SIGTERM");
      const timer = setTimeout(() => kill(child, "SIGKILL"), EXIT_TIMEOUT_MS);
      await settleWithin(exited, 2 * EXIT_TIMEOUT_MS);
      clearTimeout(timer);
    },
  };
}

function start(
  file: string,
  args: readonly string[],
  { env, cwd, shell = false }: ProgramOptions,
  more: SpawnOptions,
): ChildProcess {
  const child = spawn(file, args, {
    ...more,
    env: env as NodeJS.ProcessEnv,
    shell,
    windowsHide: true,
    ...(cwd === undefined ? {} : { cwd }),
  });
  running.add(child);
  child.once("error", () => child.pid === undefined && running.delete(child));
  return child;
}

/** Sends a signal to the program's group, or to the program alone if it has none. Ignores programs that have exited. */
function kill(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, signal);
  } catch {
    child.kill(signal);
  }
}

/** Stops waiting for the program, whose pipes a process outside its group can hold open. */
function release(child: ChildProcess): void {
  for (const stream of child.stdio ?? []) stream?.destroy();
  if (child.pid !== undefined) child.unref();
}

/** Resolves when the promise does, or after the time limit: even SIGKILL does not end a process that waits for a disk. */
async function settleWithin(promise: Promise<unknown>, ms: number): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  await Promise.race([promise, new Promise((resolve) => (timer = setTimeout(resolve, ms)))]);
  clearTimeout(timer);
}

function toProgramError(file: string, error: NodeJS.ErrnoException, cwd: string | undefined): ProgramError {
  return error.code === "ENOENT"
    ? new ProgramError("not-found", `${file} is not installed${cwd === undefined ? "" : `, or ${cwd} does not exist`}`)
    : new ProgramError("not-started", `${file} could not be started: ${error.message}`);
}
