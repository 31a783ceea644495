import { createProxy } from "../../mcp/proxy.ts";
import { EXIT, parse, usage, type Output } from "../command.ts";
import { FLAGS, settingOf, splitCommand } from "./options.ts";

export async function proxy(args: string[], io: Output): Promise<number> {
  const { ours, command } = splitCommand(args);
  const { values, positionals } = parse(ours, FLAGS);
  if (positionals.length > 0)
    throw usage(`the server's command stands after "--", such as: assent mcp proxy -- ${positionals.join(" ")}`);
  const setting = settingOf(values, command, io);
  const proxying = createProxy(setting);
  const connection = proxying.serveLines(process.stdin, process.stdout);
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => void connection.close());
  const why = await connection.closed;
  await connection.close();
  const byClient = why === "closed" || why === "the client has ended";
  if (!byClient) io.err(`assent mcp: ${why}`);
  return byClient ? EXIT.ok : EXIT.failure;
}
