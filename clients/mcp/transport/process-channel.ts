/**
 * Starts a server as a child process and connects to its standard input and output. Copies the server's standard error
 * to the proxy's.
 */
import { startProgram } from "../../../src/programs/run-program.ts";
import { createLineChannel } from "./line-channel.ts";
import { errorReply, parseServerMessages } from "./rpc-message.ts";
import { isStderrRead } from "./stderr.ts";
import type { Channel } from "./peer.ts";
import type { ProcessTarget } from "../config/server-config.ts";

/** Maximum number of invalid messages of one process that are logged. */
const MAX_LOGGED_MESSAGES = 20;

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
    stderr: "pipe",
    env: { ...serverEnvironment(), ...env },
    ...(cwd === undefined ? {} : { cwd }),
  }).catch((error: unknown) => {
    throw new Error(`the server "${name}" cannot be started: ${(error as Error).message}`);
  });
  // Read the server's standard error even if no one reads the proxy's, because the server would otherwise wait for it.
  program.stderr?.on("data", (chunk: Buffer) => isStderrRead() && process.stderr.write(chunk));
  let invalidMessages = 0;
  return createLineChannel({
    input: program.stdout,
    output: program.stdin,
    parse: parseServerMessages,
    closeReason: () => `the server "${name}" has exited`,
    onTooLong: "skip",
    onInvalidMessage(fault, send) {
      if (fault.request !== null)
        send({ jsonrpc: "2.0", id: fault.request.id, ...errorReply(fault.code, fault.message) });
      if (++invalidMessages > MAX_LOGGED_MESSAGES) return;
      log(
        `the server "${name}" wrote an invalid message, which the proxy ignores: ${fault.message}` +
          (invalidMessages === MAX_LOGGED_MESSAGES ? "; the proxy does not log further ones" : ""),
      );
    },
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
