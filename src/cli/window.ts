/** The flags --from and --to, which select a window of time. */
import { parseRfc3339 } from "../domain/time.ts";
import { usage } from "./command.ts";

/** Returns the window in milliseconds. Throws CommandError unless both are times, and `from` is earlier. */
export function parseWindow(values: { from?: string | undefined; to?: string | undefined }): {
  from: number;
  to: number;
} {
  const [from, to] = [parseTime("from", values.from), parseTime("to", values.to)];
  if (from >= to) throw usage(`--from must be earlier than --to; got \`${values.from}\` and \`${values.to}\``);
  return { from, to };
}

function parseTime(flag: string, given: string | undefined): number {
  if (given === undefined) throw usage(`--${flag} is required`);
  const at = parseRfc3339(/^\d{4}-\d\d-\d\d$/.test(given) ? `${given}T00:00:00Z` : given);
  if (at === null) throw usage(`--${flag} must be a date such as 2026-01-31, or an RFC 3339 time; got \`${given}\``);
  return at;
}
