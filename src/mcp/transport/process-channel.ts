/**
 * Starts a server as a child process and connects to its standard input and output. The server writes to the proxy's
 * standard error.
 */
import { spawn } from "node:child_process";
import { createLineChannel } from "./line-channel.ts";
import { parseServerMessage } from "./rpc-message.ts";
import type { Channel } from "./peer.ts";
import type { ProcessTarget } from "../config/server-config.ts";

/** Time limit for a server to exit after its input has ended, and again after SIGTERM. Milliseconds. */
const EXIT_TIMEOUT_MS = 2000;

/**
 * Starts the process. Resolves when it has started.
 * @throws Error whose message can be shown to the user, if the process cannot be started
 */
export async function startServerProcess(
  name: string,
  { command, args, env, cwd }: ProcessTarget,
  log: (line: string) => void,
): Promise<Channel> {
  const child = spawn(command, args, {
    stdio: ["pipe", "pipe", "inherit"],
    env: { ...serverEnvironment(), ...env },
    ...(cwd === undefined ? {} : { cwd }),
    windowsHide: true,
  });
  await new Promise<void>((resolve, reject) => {
    child.once("spawn", resolve);
    child.once("error", (error) => reject(new Error(`the server "${name}" cannot be started: ${error.message}`)));
  });
  child.on("error", (error) => log(`the server "${name}": ${error.message}`));
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  return createLineChannel({
    input: child.stdout,
    output: child.stdin,
    parse: parseServerMessage,
    closeReason: () => `the server "${name}" has exited`,
    onInvalidMessage: (fault) =>
      log(`the server "${name}" wrote an invalid message, which the proxy ignores: ${fault.message}`),
    async onClose() {
      child.stdin.end();
      const killTimers = [
        setTimeout(() => child.kill("SIGTERM"), EXIT_TIMEOUT_MS),
        setTimeout(() => child.kill("SIGKILL"), 2 * EXIT_TIMEOUT_MS),
      ];
      await exited;
      for (const timer of killTimers) clearTimeout(timer);
    },
  });
}

/** Returns the proxy's environment without the ASSENT_ variables, which contain the API key. */
function serverEnvironment(): Record<string, string> {
  return Object.fromEntries(
    Object.entries(process.env).filter(
      (entry): entry is [string, string] => entry[1] !== undefined && !entry[0].toUpperCase().startsWith("ASSENT_"),
    ),
  );
}
