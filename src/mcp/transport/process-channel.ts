/**
 * Starts a server as a child process and connects to its standard input and output. The server writes to the proxy's
 * standard error.
 */
import { startProgram } from "../../programs/run-program.ts";
import { createLineChannel } from "./line-channel.ts";
import { parseServerMessage } from "./rpc-message.ts";
import type { Channel } from "./peer.ts";
import type { ProcessTarget } from "../config/server-config.ts";

/**
 * Starts the process. Resolves when it has started.
 * @throws Error whose message can be shown to the user, if the process cannot be started
 */
export async function startServerProcess(
  name: string,
  { command, args, env, cwd }: ProcessTarget,
  log: (line: string) => void,
): Promise<Channel> {
  const program = await startProgram(command, args, {
    stderr: "inherit",
    env: { ...serverEnvironment(), ...env },
    ...(cwd === undefined ? {} : { cwd }),
  }).catch((error: unknown) => {
    throw new Error(`the server "${name}" cannot be started: ${(error as Error).message}`);
  });
  return createLineChannel({
    input: program.stdout,
    output: program.stdin,
    parse: parseServerMessage,
    closeReason: () => `the server "${name}" has exited`,
    onInvalidMessage: (fault) =>
      log(`the server "${name}" wrote an invalid message, which the proxy ignores: ${fault.message}`),
    onClose: () => program.end(),
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
