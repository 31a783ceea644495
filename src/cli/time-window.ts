/** Parses the flags --from and --to, which select a time window. */
import { usageError } from "./command.ts";
import { parsePast } from "./times.ts";

/**
 * Returns the window in milliseconds. Throws CommandError unless both flags are times and `from` is earlier.
 * @example
 * const { from, to } = parseTimeWindow({ from: "2026-01-01", to: "2026-02-01" });
 */
export function parseTimeWindow(values: { from?: string | undefined; to?: string | undefined }): {
  from: number;
  to: number;
} {
  const now = Date.now();
  const [from, to] = [parseTime("from", values.from, now), parseTime("to", values.to, now)];
  if (from >= to) throw usageError(`--from must be earlier than --to; got \`${values.from}\` and \`${values.to}\``);
  return { from, to };
}

function parseTime(flag: string, text: string | undefined, now: number): number {
  if (text === undefined) throw usageError(`--${flag} is required`);
  return parsePast(`--${flag}`, text, now);
}
