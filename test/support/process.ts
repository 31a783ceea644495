/** The real service as a real process, through its command line. */
import { spawn, type ChildProcess } from "node:child_process";

export const MAIN = new URL("../../src/cli/main.ts", import.meta.url).pathname;
export const ROOT = new URL("../..", import.meta.url).pathname;

export interface ServiceProcess {
  child: ChildProcess;
  url: string;
  /** Everything it wrote to standard output and standard error so far. */
  output(): string;
  /** Resolves with the exit code, or the signal's name. */
  ended: Promise<number | string>;
}

/** Starts `assent serve` on a free port. Rejects with its output when it does not come to listen. */
export async function startProcess(env: Record<string, string>, args: string[] = []): Promise<ServiceProcess> {
  const child = spawn(process.execPath, ["--import", "tsx", MAIN, "serve", ...args], {
    cwd: ROOT,
    env: { ...process.env, ASSENT_PORT: "0", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  const ended = new Promise<number | string>((resolve) => child.once("exit", (code, signal) => resolve(code ?? signal ?? "unknown")));
  const url = await new Promise<string>((resolve, reject) => {
    const look = (chunk: Buffer): void => {
      output += chunk.toString();
      const found = /assent is listening on (http:\S+)/.exec(output)?.[1];
      if (found !== undefined) resolve(found);
    };
    child.stdout.on("data", look);
    child.stderr.on("data", look);
    void ended.then((how) => reject(new Error(`the service ended with ${how}:\n${output}`)));
  });
  return { child, url, output: () => output, ended };
}

export async function stopProcess(service: ServiceProcess, signal: NodeJS.Signals = "SIGTERM"): Promise<number | string> {
  service.child.kill(signal);
  return service.ended;
}
