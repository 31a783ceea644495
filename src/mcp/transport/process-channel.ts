/** A server that the proxy starts: MCP over its standard input and output; its standard error is the proxy's. */
import { spawn } from "node:child_process";
import { createLineChannel } from "./line-channel.ts";
import { parseServerMessage } from "./message.ts";
import type { Channel } from "./peer.ts";
import type { ProcessTarget } from "../config/server-config.ts";

/** How long a server may take to end after its input has: then it is ended. Milliseconds. */
const EXIT_TIMEOUT_MS = 2000;

/** Resolves when the process runs. @throws Error with a sentence, when it cannot be started */
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
    child.once("error", (error) => reject(new Error(`the server "${name}" does not start: ${error.message}`)));
  });
  child.on("error", (error) => log(`the server "${name}": ${error.message}`));
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  return createLineChannel({
    input: child.stdout,
    output: child.stdin,
    parse: parseServerMessage,
    closeReason: () => `the server "${name}" has ended`,
    onInvalidMessage: (fault) =>
      log(`the server "${name}" wrote what is no message, which is left out: ${fault.message}`),
    async onClose() {
      child.stdin.end();
      const late = [
        setTimeout(() => child.kill("SIGTERM"), EXIT_TIMEOUT_MS),
        setTimeout(() => child.kill("SIGKILL"), 2 * EXIT_TIMEOUT_MS),
      ];
      await ended;
      for (const timer of late) clearTimeout(timer);
    },
  });
}

/** What the proxy was given for the server. Its own key is not the server's affair. */
function serverEnvironment(): Record<string, string> {
  return Object.fromEntries(
    Object.entries(process.env).filter(
      (entry): entry is [string, string] => entry[1] !== undefined && !entry[0].toUpperCase().startsWith("ASSENT_"),
    ),
  );
}
