/** Starts the worker and hookd. Loaded only if hookd does not respond. */
import { fileURLToPath } from "node:url";
import { readAnswer, type HookAnswer } from "./hosts/answers.ts";
import { createSocketFolder } from "./hookd-socket.ts";
import { runtimeCommand } from "../../src/programs/runtime-command.ts";
import { runProgram, startBackgroundProgram } from "../../src/programs/run-program.ts";

/** Maximum size of a worker's answer. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;

/** Returns the command that runs a script of this folder, either the source or the built file. */
const commandFor = (name: string): [program: string, ...args: string[]] =>
  runtimeCommand(
    fileURLToPath(new URL(`./${name}${import.meta.url.endsWith(".ts") ? ".ts" : ".js"}`, import.meta.url)),
  );

/**
 * Environment variables that the child processes receive. In some hosts, a repository can set other variables, and
 * options for Node or a proxy could then affect the decision.
 */
const FORWARDED_ENVIRONMENT =
  /^(HOME|USERPROFILE|PATH|XDG_[A-Z_]+|TMPDIR|TEMP|TMP|SystemRoot|LANG|LC_[A-Z]+|TZ|DENO_DIR|NODE_EXTRA_CA_CERTS|ASSENT_[A-Z_]+)$/i;

export function safeEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => FORWARDED_ENVIRONMENT.test(name)));
}

/** Sends a request to a new worker. Resolves to null if it fails. The worker is killed when this process exits. */
export async function decideInWorker(request: Buffer): Promise<HookAnswer | null> {
  try {
    const [program, ...args] = commandFor("worker");
    const { code, stdout } = await runProgram(program, args, {
      env: safeEnvironment(),
      input: request,
      maxOutput: MAX_ANSWER_BYTES,
      // A host that kills the hook's group then kills the worker, too.
      sharesGroup: true,
    });
    return code === 0 ? readAnswer(stdout.toString("utf8")) : null;
  } catch {
    return null;
  }
}

/**
 * Starts hookd for later calls. Ignores a failure.
 * @param path path of the socket
 */
export function startDaemon(path: string): void {
  try {
    createSocketFolder(path);
    const [program, ...args] = commandFor("daemon");
    startBackgroundProgram(program, args, { env: safeEnvironment(), cwd: "/" });
  } catch {
    // Ignore the error, because the call has already been decided.
  }
}
