/**
 * The process that a host starts for each event. It reads the event, lets another process (hookd, or a worker) decide,
 * and writes the answer. A denial is ready from the start, and only a complete answer replaces it. Because another
 * process decides, a hang there cannot delay the answer beyond the deadline.
 */
import { writeSync } from "node:fs";
import { createConnection } from "node:net";
import { callingCodexPath } from "./codex-process.ts";
import {
  needsDecision,
  HOST_DIALECTS,
  detectHost,
  isHost,
  readAnswer,
  type HookAnswer,
  type Host,
} from "./hosts/answers.ts";
import { MAX_PAYLOAD_BYTES, PayloadError, readPayload, rejectAmbiguousJson, dropLargeValues } from "./payload.ts";
import type { RequestHeader } from "./hookd-protocol.ts";
import { isPrivateSocket, socketPath } from "./hookd-socket.ts";
import { VERSION } from "../../src/version.ts";

/** Maximum size of an event in bytes. Large, because the event may contain the output of a tool. */
const MAX_EVENT_BYTES = 64 * 1024 * 1024;
/** Time limit for reading standard input. Milliseconds. */
const INPUT_TIMEOUT_MS = 5_000;
/**
 * Timeout for more input after the answer is written. If no data arrives within it, the launcher stops reading.
 * Milliseconds.
 */
const DRAIN_TIMEOUT_MS = 5_000;
/** Heartbeat timeout of hookd, after which a worker is used instead. Milliseconds. */
const HOOKD_TIMEOUT_MS = 4_000;
/** Seconds that are added to `--wait` for everything except the wait. The host's limit applies if the sum is higher. */
const WAIT_OVERHEAD = 15;
/** Environment variables that the deciding process receives with each request. */
const FORWARDED_VARIABLES =
  "HOME USERPROFILE XDG_CONFIG_HOME XDG_STATE_HOME ASSENT_URL ASSENT_API_KEY ASSENT_AGENT ASSENT_AUTHORITY".split(" ");

interface Options {
  host: Host;
  /** Seconds that a call waits for approval; null for as long as the host allows. */
  wait: number | null;
  daemon: boolean;
}

/** Answers one event and exits. */
export async function runHook(args: readonly string[]): Promise<void> {
  const startedAt = performance.now();
  const options = readOptions(args);
  let host = options?.host ?? guessHost(args);
  let mustAnswer = true;
  let ended = false;
  const end = (answer: HookAnswer): void => {
    if (ended) return;
    ended = true;
    const code = writeAnswer(answer);
    process.exitCode = code;
    const remaining = HOST_DIALECTS[host].deadline * 1000 - (performance.now() - startedAt);
    drainInput(Math.max(remaining, 1_000), () => process.exit(code));
  };
  const deny = (reason: string): void =>
    end(mustAnswer ? HOST_DIALECTS[host].deny(`Not run: ${reason}.`) : HOST_DIALECTS[host].pass());
  const denyOnFailure = (): void => deny("the hook failed");
  process.on("uncaughtException", denyOnFailure);
  process.on("unhandledRejection", denyOnFailure);
  // Without this handler, the process could exit without an answer.
  process.once("beforeExit", denyOnFailure);
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.on(signal, () => deny("the hook was stopped"));
  const limit = setTimeout(() => deny("the call did not arrive completely"), INPUT_TIMEOUT_MS);
  if (options === null) return deny("the hook was started with unknown options");
  try {
    const payload = await readInput();
    // The event was already answered while the input was still arriving.
    if (ended) return;
    if (payload === null) return deny("the call is larger than 64 MiB");
    const isLarge = payload.length > MAX_PAYLOAD_BYTES;
    const { text, value } = readPayload(isLarge ? dropLargeValues(payload) : payload);
    host = detectHost(value, host);
    // Reject ambiguous JSON, from which another parser may read a different event.
    rejectAmbiguousJson(text, needsDecision(value));
    mustAnswer = needsDecision(value);
    if (isLarge && mustAnswer) return deny("the call is larger than 4 MiB");
    // Of a large output, the deciding process only has to know that it is too large to be inspected.
    const event = isLarge ? dropLargeValues(payload) : payload;
    clearTimeout(limit);
    const maxSeconds = Math.min(HOST_DIALECTS[host].deadline, HOST_DIALECTS[options.host].deadline);
    // A wait that is shorter than the host's limit still needs time for everything else.
    const seconds = options.wait === null ? maxSeconds : Math.min(options.wait + WAIT_OVERHEAD, maxSeconds);
    const remaining = (): number => seconds - (performance.now() - startedAt) / 1000;
    setTimeout(() => deny("there was no decision in time. Repeat the same command later"), remaining() * 1000);
    const header: Omit<RequestHeader, "deadline"> = {
      version: VERSION,
      host: options.host,
      cwd: process.cwd(),
      project: projectFolder(host),
      program: host === "codex" ? callingCodexPath() : null,
      env: forwardedEnvironment(),
      maxWait: options.wait,
    };
    const request = (): Buffer =>
      Buffer.concat([Buffer.from(`${JSON.stringify({ ...header, deadline: remaining() })}\n`), event]);
    const path = options.daemon ? socketPath(process.env, VERSION) : null;
    let answer = path !== null && isPrivateSocket(path) ? await requestFromHookd(path, request()) : null;
    if (answer === null && !ended) {
      const { decideInWorker: askWorker, startDaemon } = await import("./decision-processes.ts");
      answer = await askWorker(request());
      if (path !== null) startDaemon(path);
    }
    if (answer === null) return denyOnFailure();
    end(answer);
  } catch (error) {
    if (error instanceof PayloadError) deny(error.message);
    else denyOnFailure();
  }
}

function readOptions(args: readonly string[]): Options | null {
  const options: Partial<Options> = {};
  for (let i = 0; i < args.length; i++) {
    const [name, inlineValue] = (args[i] as string).split("=", 2) as [string, string | undefined];
    if (name === "--no-daemon") options.daemon = false;
    else {
      const value = inlineValue ?? args[++i];
      if (name === "--host" && isHost(value)) options.host = value;
      else if (name === "--wait") {
        const seconds = parseWait(value ?? "");
        if (seconds === null) return null;
        options.wait = seconds;
      } else return null;
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

const UNIT_SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600 };

/** Returns the seconds in a number, or in a duration with one unit such as `5m`; null for any other text. */
function parseWait(text: string): number | null {
  const [, amount, unit = "s"] = /^([0-9]+(?:[.][0-9]+)?)([smh]?)$/.exec(text) ?? [];
  return amount === undefined ? null : Number(amount) * (UNIT_SECONDS[unit || "s"] ?? 1);
}

/** Returns the host whose format is used to deny invalid options. */
function guessHost(args: readonly string[]): Host {
  return args.flatMap((arg) => arg.split("=")).find(isHost) ?? "claude-code";
}

/** Reads standard input. Resolves to null if it is too large. */
function readInput(): Promise<Buffer | null> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    process.stdin.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size > MAX_EVENT_BYTES) resolve(null);
      else chunks.push(chunk);
    });
    process.stdin.once("end", () => resolve(Buffer.concat(chunks)));
    process.stdin.once("error", reject);
  });
}

/**
 * Reads the rest of the input before the process exits, because a host that cannot write all of it considers the hook
 * failed, and might run the call.
 * @param timeoutMs time limit in milliseconds
 */
function drainInput(timeoutMs: number, onDrained: () => void): void {
  try {
    const { stdin } = process;
    if (stdin.readableEnded || stdin.destroyed) return onDrained();
    setTimeout(onDrained, timeoutMs);
    let idle = setTimeout(onDrained, DRAIN_TIMEOUT_MS);
    stdin.on("data", () => {
      clearTimeout(idle);
      idle = setTimeout(onDrained, DRAIN_TIMEOUT_MS);
    });
    for (const event of ["end", "error", "close"]) stdin.once(event, onDrained);
    stdin.resume();
  } catch {
    onDrained();
  }
}

function writeAnswer({ stdout, stderr, code }: HookAnswer): number {
  write(2, stderr);
  if (write(1, stdout)) return code;
  // The host closed the pipe and does not read the answer. Exit code 2 stops the call. Some hosts also need a reason on
  // standard error.
  if (stderr === "") write(2, "Not run: the hook's answer was not read.\n");
  return 2;
}

/**
 * Writes synchronously, because setting up a stream takes as long as the rest of this process. Returns false if the
 * pipe is closed.
 */
function write(descriptor: 1 | 2, text: string): boolean {
  let remaining = Buffer.from(text);
  for (let tries = 0; remaining.length > 0; tries++)
    try {
      remaining = remaining.subarray(writeSync(descriptor, remaining));
    } catch (error) {
      // The host made the pipe non-blocking and does not read from it.
      if ((error as NodeJS.ErrnoException).code !== "EAGAIN" || tries > 100) return false;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
    }
  return true;
}

/**
 * Returns the project folder. Reads only this host's variable, because variables of another host may be inherited from
 * an agent that started this host.
 */
function projectFolder(host: Host): string | null {
  const names = { "claude-code": "CLAUDE_PROJECT_DIR", gemini: "GEMINI_PROJECT_DIR", cursor: "CURSOR_PROJECT_DIR" };
  return (Object.hasOwn(names, host) && process.env[names[host as keyof typeof names]]) || null;
}

function forwardedEnvironment(): Record<string, string> {
  return Object.fromEntries(
    FORWARDED_VARIABLES.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])),
  );
}

/** Sends a request to hookd. Resolves to null if there is no answer, which means that no call was allowed. */
function requestFromHookd(path: string, request: Buffer): Promise<HookAnswer | null> {
  return new Promise((resolve) => {
    let text = "";
    const socket = createConnection({ path, allowHalfOpen: true });
    socket.setEncoding("utf8");
    socket.setTimeout(HOOKD_TIMEOUT_MS, () => socket.destroy());
    socket.on("data", (chunk: string) => (text += chunk));
    socket.on("error", () => socket.destroy());
    socket.on("close", () => resolve(readAnswer(text)));
    socket.on("end", () => socket.destroy());
    socket.end(request);
  });
}
