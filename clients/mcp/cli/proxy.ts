import { EXIT_CODES, type Output, parseArguments, serveUntilStopped, usageError } from "../../../src/command.ts";
import { CLIENT_CLOSED } from "../clients/connection.ts";
import { createProxy } from "../proxy.ts";
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
  await serveUntilStopped(
    (request) => edge.fetch(request),
    { ...at, option: "--listen" },
    (url) => io.out(`the proxy is listening on ${url}/mcp`),
    () => edge.close(),
  );
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
