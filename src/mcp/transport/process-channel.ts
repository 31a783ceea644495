/** A server that the proxy starts: MCP over its standard input and output; its standard error is the proxy's. */
import { spawn } from "node:child_process";
import { lineChannel } from "./line-channel.ts";
import { parseLoosely } from "./message.ts";
import type { Channel } from "./peer.ts";
import type { Process } from "../config/server-config.ts";

/** How long a server may take to end after its input has: then it is ended. Milliseconds. */
const GRACE = 2000;

/** Resolves when the process runs. @throws Error with a sentence, when it cannot be started */
export async function startProcess(
  name: string,
  { command, args, env, cwd }: Process,
  log: (line: string) => void,
): Promise<Channel> {
  const child = spawn(command, args, {
    stdio: ["pipe", "pipe", "inherit"],
    env: { ...environment(), ...env },
    ...(cwd === undefined ? {} : { cwd }),
    windowsHide: true,
  });
  await new Promise<void>((resolve, reject) => {
    child.once("spawn", resolve);
    child.once("error", (error) => reject(new Error(`the server "${name}" does not start: ${error.message}`)));
  });
  child.on("error", (error) => log(`the server "${name}": ${error.message}`));
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  return lineChannel({
    input: child.stdout,
    output: child.stdin,
    parse: parseLoosely,
    gone: () => `the server "${name}" has ended`,
    onfault: (fault) => log(`the server "${name}" wrote what is no message, which is left out: ${fault.message}`),
    async end() {
      child.stdin.end();
      const late = [setTimeout(() => child.kill("SIGTERM"), GRACE), setTimeout(() => child.kill("SIGKILL"), 2 * GRACE)];
      await ended;
      for (const timer of late) clearTimeout(timer);
    },
  });
}

/** What the proxy was given for the server. Its own key is not the server's affair. */
function environment(): Record<string, string> {
  return Object.fromEntries(
    Object.entries(process.env).filter(
      (entry): entry is [string, string] => entry[1] !== undefined && !entry[0].toUpperCase().startsWith("ASSENT_"),
    ),
  );
}
