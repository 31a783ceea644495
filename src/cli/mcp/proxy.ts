import { CLIENT_CLOSED } from "../../../clients/mcp/clients/connection.ts";
import { createProxy } from "../../../clients/mcp/proxy.ts";
import { stopOnSignals, serve, type RunningServer } from "../../serve/index.ts";
import { EXIT_CODES, parseArguments, usageError, type Output } from "../command.ts";
import { listen } from "../listen.ts";
import { PROXY_FLAGS, parseListenAddress, readProxySetting, splitCommand } from "./proxy-flags.ts";

export async function proxy(args: string[], io: Output): Promise<number> {
  const { ours, command } = splitCommand(args);
  const { values, positionals } = parseArguments(ours, PROXY_FLAGS);
  if (positionals.length > 0)
    throw usageError(
      `write the server's command after "--", for example: assent mcp proxy -- ${positionals.join(" ")}`,
    );
  const setting = readProxySetting(values, command, io);
  const at = parseListenAddress(values, setting);
  const proxying = createProxy(setting);
  if (at === null) return runOverStdio(proxying.serveStdio(process.stdin, process.stdout), io);

  const edge = await proxying.serveHttp();
  let listening: RunningServer;
  try {
    listening = await listen(
      serve((request) => edge.fetch(request), at),
      "--listen",
    );
  } catch (error) {
    await edge.close();
    throw error;
  }
  const stopped = new Promise<void>((resolve) =>
    stopOnSignals(async () => {
      await edge.close();
      await listening.stop();
      resolve();
    }),
  );
  io.out(`the proxy is listening on ${listening.url}/mcp`);
  await stopped;
  return EXIT_CODES.ok;
}

async function runOverStdio(
  connection: { closed: Promise<string>; close(): Promise<void> },
  io: Output,
): Promise<number> {
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => void connection.close());
  const why = await connection.closed;
  await connection.close();
  const byClient = why === "closed" || why === CLIENT_CLOSED;
  if (!byClient) io.err(`assent mcp: ${why}`);
  return byClient ? EXIT_CODES.ok : EXIT_CODES.failure;
}
