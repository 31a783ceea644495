/** Reports the results of commands that print their steps as lines. */
import { EXIT_CODES, printJson, type Output } from "./command.ts";

/**
 * Runs a command. With `json`, collects its lines and prints a single object at the end, with the lines and whether
 * everything succeeded.
 * @example
 * return withJsonReport(io, values.json, (report) => run(report));
 */
export async function withJsonReport(
  io: Output,
  json: boolean | undefined,
  work: (io: Output) => Promise<number>,
): Promise<number> {
  if (json !== true) return work(io);
  const lines: string[] = [];
  const collect = (text: string): void => void lines.push(...text.split("\n").filter((line) => line !== ""));
  const code = await work({ ...io, fancy: false, out: collect });
  printJson(io, { done: code === EXIT_CODES.ok, lines });
  return code;
}
