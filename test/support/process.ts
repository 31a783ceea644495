/** Starts `assent serve` and other commands as child processes. */
import { spawn, type ChildProcess } from "node:child_process";
import { join } from "node:path";
import { until } from "./wait.ts";
import { commandOf, denoPermissions, NODE, ROOT, scriptOf, thisRuntime, type RuntimeName } from "./runtimes.ts";

export { ROOT };

/** Path of the script that the `assent` command runs. */
export const MAIN: string = scriptOf("src/cli/bin");

/** Arguments for Node that run the `assent` command. */
export const ASSENT: readonly string[] = [...NODE, MAIN];

export interface ServiceProcess {
  child: ChildProcess;
  url: string;
  /** Returns everything that the process has written to standard output and standard error so far. */
  output(): string;
  /** Resolves with the exit code, or the name of the signal. */
  ended: Promise<number | string>;
}

/**
 * Returns a state folder inside the data folder, because tests start copies of one store, which must not share state.
 */
export function stateBeside({ ASSENT_DATA: data }: Record<string, string>): Record<string, string> {
  return data === undefined ? {} : { ASSENT_STATE: join(data, "state") };
}

/** Starts `assent serve` on a free port. Rejects with the process's output if it exits before it listens. */
export function startProcess(
  env: Record<string, string>,
  args: string[] = [],
  runtime: RuntimeName = thisRuntime,
  program?: string | null,
): Promise<ServiceProcess> {
  const permissions = denoPermissions("start", env["ASSENT_DATA"]);
  return startCommand(commandOf(runtime, MAIN, ["serve", ...args], permissions, program), env);
}

interface StartOptions {
  /** Starts the process as leader of a process group, so that a signal can reach the whole group. */
  detached?: boolean;
  /** Working folder. Default: the repository. */
  cwd?: string;
  /** Matches the output that contains the address. The first group is the address. */
  listening?: RegExp;
}

/** Starts a command and waits until it listens. */
export async function startCommand(
  [program, args]: [program: string, args: string[]],
  env: Record<string, string>,
  { listening = /assent is listening on (http:\S+)/, ...options }: StartOptions = {},
): Promise<ServiceProcess> {
  const child = spawn(program, args, {
    cwd: ROOT,
    // Most tests act for any agent with an admin key.
    env: {
      ...process.env,
      ASSENT_AGENTS: "any",
      ASSENT_PORT: "0",
      DENO_NO_UPDATE_CHECK: "1",
      ...stateBeside(env),
      ...env,
    },
    stdio: ["ignore", "pipe", "pipe"],
    ...options,
  });
  let output = "";
  const ended = new Promise<number | string>((resolve) =>
    child.once("exit", (code, signal) => resolve(code ?? signal ?? "unknown")),
  );
  const url = await new Promise<string>((resolve, reject) => {
    const look = (chunk: Buffer): void => {
      output += chunk.toString();
      const found = listening.exec(output)?.[1];
      if (found !== undefined) resolve(found);
    };
    child.stdout.on("data", look);
    child.stderr.on("data", look);
    void ended.then((how) => reject(new Error(`the process exited with ${how} before it listened:\n${output}`)));
  });
  return { child, url, output: () => output, ended };
}

export async function stopProcess(
  service: ServiceProcess,
  signal: NodeJS.Signals = "SIGTERM",
): Promise<number | string> {
  service.child.kill(signal);
  return service.ended;
}

/** Sends a signal to the process group of a detached child, and waits until all of its processes have exited. */
export async function endProcessGroup({ pid }: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  const isGone = (sent: NodeJS.Signals | 0): boolean => {
    try {
      return !process.kill(-(pid as number), sent);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
      return true;
    }
  };
  if (!isGone(signal)) await until("all processes of the group have exited", () => isGone(0));
}
