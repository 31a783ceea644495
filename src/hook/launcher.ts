/**
 * What the host runs for each call. It reads the event, has it decided by another process (hookd, or a worker of its own),
 * and answers. A deny in the host's words is at hand from the first line on; only a whole answer takes its place. Since
 * nothing is decided in here, a hang over there cannot keep this process from answering in time.
 */
import { writeSync } from "node:fs";
import { createConnection } from "node:net";
import { callingCodexPath } from "./codex-process.ts";
import {
  needsDecision,
  DIALECTS,
  detectHost,
  isHost,
  readAnswer,
  type HookAnswer,
  type Host,
} from "./hosts/answers.ts";
import { MAX_PAYLOAD_BYTES, PayloadError, readPayload, rejectAmbiguousJson, dropLargeValues } from "./payload.ts";
import { isPrivateSocket, socketPath } from "./hookd-socket.ts";
import { VERSION } from "../version.ts";

/** Of an event that is read: what a tool has answered may be large. Bytes. */
const MAX_EVENT_BYTES = 64 * 1024 * 1024;
/** Until standard input has ended. Milliseconds. */
const INPUT_TIMEOUT_MS = 5_000;
/** What is left of a call that is refused is still read, to the deadline or until nothing came for so long. Milliseconds. */
const DRAIN_TIMEOUT_MS = 5_000;
/** Without a sign of life hookd is taken for dead, and a worker decides. Milliseconds. */
const HOOKD_TIMEOUT_MS = 4_000;
/** For all but the wait, where less is held than the host bears. Seconds. */
const WAIT_OVERHEAD = 15;
/** Names of what `wire.ts` passes on; spelled here too, because that file loads the decision. */
const FORWARDED_VARIABLES =
  "HOME USERPROFILE XDG_CONFIG_HOME XDG_STATE_HOME ASSENT_URL ASSENT_API_KEY ASSENT_AGENT".split(" ");

interface Options {
  host: Host;
  /** Seconds; null: what the host bears. */
  wait: number | null;
  daemon: boolean;
}

/** Ends the process. */
export async function runHook(args: readonly string[]): Promise<void> {
  const begun = performance.now();
  const options = readOptions(args);
  let host = options?.host ?? guessHost(args);
  let mustAnswer = true;
  let ended = false;
  const end = (answer: HookAnswer): void => {
    if (ended) return;
    ended = true;
    const code = writeAnswer(answer);
    process.exitCode = code;
    const left = DIALECTS[host].deadline * 1000 - (performance.now() - begun);
    drainInput(Math.max(left, 1_000), () => process.exit(code));
  };
  const refuse = (why: string): void =>
    end(mustAnswer ? DIALECTS[host].deny(`Not run: ${why}.`) : DIALECTS[host].allow());
  const fault = (): void => refuse("the hook failed");
  process.on("uncaughtException", fault);
  process.on("unhandledRejection", fault);
  // Nothing is left to wait for, and nothing was answered.
  process.once("beforeExit", fault);
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const)
    process.on(signal, () => refuse("the hook was stopped"));
  const limit = setTimeout(() => refuse("the call did not arrive whole"), INPUT_TIMEOUT_MS);
  if (options === null) return refuse("the hook was started with options it does not know");
  try {
    const payload = await readInput();
    // What was refused while it arrived is asked about no more.
    if (ended) return;
    if (payload === null) return refuse("the call is larger than 64 MiB");
    const isLarge = payload.length > MAX_PAYLOAD_BYTES;
    const { text, value } = readPayload(isLarge ? dropLargeValues(payload) : payload);
    host = detectHost(value, host);
    // Which event it is, another reader of an ambiguous text may see otherwise.
    rejectAmbiguousJson(text, needsDecision(value));
    mustAnswer = needsDecision(value);
    if (isLarge) return refuse("the call is larger than 4 MiB");
    clearTimeout(limit);
    const most = Math.min(DIALECTS[host].deadline, DIALECTS[options.host].deadline);
    // Holding less leaves time for everything else.
    const seconds = options.wait === null ? most : Math.min(options.wait + WAIT_OVERHEAD, most);
    const left = (): number => seconds - (performance.now() - begun) / 1000;
    setTimeout(() => refuse("there was no decision in time. Repeat the same command later"), left() * 1000);
    const header = {
      version: VERSION,
      host: options.host,
      cwd: process.cwd(),
      project: projectFolder(host),
      program: host === "codex" ? callingCodexPath() : null,
      env: forwardedEnvironment(),
      hold: options.wait,
    };
    const request = (): Buffer =>
      Buffer.concat([Buffer.from(`${JSON.stringify({ ...header, deadline: left() })}\n`), payload]);
    const path = options.daemon ? socketPath(process.env, VERSION) : null;
    let answer = path !== null && isPrivateSocket(path) ? await requestFromHookd(path, request()) : null;
    if (answer === null && !ended) {
      const { decideInWorker: askWorker, startDaemon } = await import("./decision-processes.ts");
      answer = await askWorker(request());
      if (path !== null) startDaemon(path);
    }
    if (answer === null) return fault();
    end(answer);
  } catch (error) {
    if (error instanceof PayloadError) refuse(error.message);
    else fault();
  }
}

function readOptions(args: readonly string[]): Options | null {
  const options: Partial<Options> = {};
  for (let i = 0; i < args.length; i++) {
    const [name, inline] = (args[i] as string).split("=", 2) as [string, string | undefined];
    if (name === "--no-daemon") options.daemon = false;
    else {
      const value = inline ?? args[++i];
      if (name === "--host" && isHost(value)) options.host = value;
      else if (name === "--wait" && /^[0-9]+([.][0-9]+)?$/.test(value ?? "")) options.wait = Number(value);
      else return null;
    }
  }
  return options.host === undefined
    ? null
    : {
        host: options.host,
        wait: options.wait ?? null,
        daemon: options.daemon ?? process.env["ASSENT_HOOKD"] !== "off",
      };
}

/** The dialect for a deny about wrong options. */
function guessHost(args: readonly string[]): Host {
  return args.flatMap((arg) => arg.split("=")).find(isHost) ?? "claude-code";
}

/** Null when it is too large. */
function readInput(): Promise<Buffer | null> {
  return new Promise((done, fail) => {
    const chunks: Buffer[] = [];
    let size = 0;
    process.stdin.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size > MAX_EVENT_BYTES) done(null);
      else chunks.push(chunk);
    });
    process.stdin.once("end", () => done(Buffer.concat(chunks)));
    process.stdin.once("error", fail);
  });
}

/**
 * Until the host has written all of the call: one that cannot takes the hook for failed, and some run the call then.
 * @param most milliseconds
 */
function drainInput(most: number, then: () => void): void {
  try {
    const { stdin } = process;
    if (stdin.readableEnded || stdin.destroyed) return then();
    setTimeout(then, most);
    let idle = setTimeout(then, DRAIN_TIMEOUT_MS);
    stdin.on("data", () => {
      clearTimeout(idle);
      idle = setTimeout(then, DRAIN_TIMEOUT_MS);
    });
    for (const event of ["end", "error", "close"]) stdin.once(event, then);
    stdin.resume();
  } catch {
    then();
  }
}

/** Returns the code to end with. */
function writeAnswer({ stdout, stderr, code }: HookAnswer): number {
  write(2, stderr);
  if (write(1, stdout)) return code;
  // A host that has closed the pipe reads no answer; 2 stops the call, in some hosts only with a reason.
  if (stderr === "") write(2, "Not run: the hook's answer was not read.\n");
  return 2;
}

/** Without a stream, which takes as long to set up as everything else here. False when nobody reads it. */
function write(descriptor: 1 | 2, text: string): boolean {
  let left = Buffer.from(text);
  for (let tries = 0; left.length > 0; tries++)
    try {
      left = left.subarray(writeSync(descriptor, left));
    } catch (error) {
      // A pipe that a host has made not to wait, and does not empty.
      if ((error as NodeJS.ErrnoException).code !== "EAGAIN" || tries > 100) return false;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
    }
  return true;
}

/** Of the host that asks: another one's variable may be left over from an agent that started this one. */
function projectFolder(host: Host): string | null {
  const names = { "claude-code": "CLAUDE_PROJECT_DIR", gemini: "GEMINI_PROJECT_DIR", cursor: "CURSOR_PROJECT_DIR" };
  return (Object.hasOwn(names, host) && process.env[names[host as keyof typeof names]]) || null;
}

function forwardedEnvironment(): Record<string, string> {
  return Object.fromEntries(
    FORWARDED_VARIABLES.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])),
  );
}

/** Null when hookd gave no answer: then nothing has been let through. */
function requestFromHookd(path: string, request: Buffer): Promise<HookAnswer | null> {
  return new Promise((done) => {
    let text = "";
    const socket = createConnection({ path, allowHalfOpen: true });
    socket.setEncoding("utf8");
    socket.setTimeout(HOOKD_TIMEOUT_MS, () => socket.destroy());
    socket.on("data", (chunk: string) => (text += chunk));
    socket.on("error", () => socket.destroy());
    socket.on("close", () => done(readAnswer(text)));
    socket.on("end", () => socket.destroy());
    socket.end(request);
  });
}
