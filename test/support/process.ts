/** The real service as a real process, through its command line. */
import { spawn, type ChildProcess } from "node:child_process";
import { join } from "node:path";
import { until } from "./wait.ts";
import { commandOf, denoPermissions, NODE, ROOT, scriptOf, thisRuntime, type RuntimeName } from "./runtimes.ts";

export { ROOT };

/** The script behind `assent`. */
export const MAIN: string = scriptOf("src/cli/bin");

/** The command line for Node: its arguments up to the command. */
export const ASSENT: readonly string[] = [...NODE, MAIN];

export interface ServiceProcess {
  child: ChildProcess;
  url: string;
  /** Everything it wrote to standard output and standard error so far. */
  output(): string;
  /** Resolves with the exit code, or the signal's name. */
  ended: Promise<number | string>;
}

/** What a service keeps outside its data folder belongs to that folder alone: tests start copies of one store. */
export function stateBeside({ ASSENT_DATA: data }: Record<string, string>): Record<string, string> {
  return data === undefined ? {} : { ASSENT_STATE: join(data, "state") };
}

/** Starts `assent serve` on a free port. Rejects with its output when it does not come to listen. */
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
  /** As leader of a process group, so that a signal can reach all of it. */
  detached?: boolean;
  /** This repository when absent. */
  cwd?: string;
  /** What says where it listens, in what it prints. */
  listening?: RegExp;
}

/** Starts a command that ends up serving. */
export async function startCommand(
  [program, args]: [program: string, args: string[]],
  env: Record<string, string>,
  { listening = /assent is listening on (http:\S+)/, ...options }: StartOptions = {},
): Promise<ServiceProcess> {
  const child = spawn(program, args, {
    cwd: ROOT,
    // Most tests speak for any agent with an admin's key.
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
    void ended.then((how) => reject(new Error(`the service ended with ${how}:\n${output}`)));
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

/** Sends a signal to all of the process group that a detached child leads, and waits until none of it is left. */
export async function endGroup({ pid }: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  const isGone = (sent: NodeJS.Signals | 0): boolean => {
    try {
      return !process.kill(-(pid as number), sent);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
      return true;
    }
  };
  if (!isGone(signal)) await until("all of the process group has ended", () => isGone(0));
}
