/** Parses times and durations in options: `2026-01-31`, `2026-01-31T09:00:00Z`, `2h`, `90`. */
import { parseDuration, parseRfc3339 } from "../domain/time.ts";
import { usageError } from "./command.ts";

/**
 * Returns a time in milliseconds. A duration is subtracted from the current time. A date means its start in UTC. Throws
 * a usage error for any other text.
 * @param flag name of the option, with its dashes
 * @example
 * parsePast("--since", "2h"); // Date.now() - 7_200_000
 */
export function parsePast(flag: string, text: string, now: number = Date.now()): number {
  return parseMoment(flag, text, { now, direction: -1 });
}

/**
 * Returns a time in milliseconds. A duration is added to the current time. Otherwise like `parsePast`.
 * @example
 * const until = parseFuture("--until", "2h");
 */
export function parseFuture(flag: string, text: string, now: number = Date.now()): number {
  return parseMoment(flag, text, { now, direction: 1 });
}

function parseMoment(flag: string, text: string, { now, direction }: { now: number; direction: 1 | -1 }): number {
  const duration = parseDuration(text);
  const at =
    duration === null
      ? parseRfc3339(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00Z` : text)
      : now + direction * duration;
  // A duration can lead to a year that RFC 3339 cannot express.
  if (at !== null && Math.abs(at - now) < MAX_DISTANCE) return at;
  throw usageError(
    `${flag} must be a time such as 2026-01-31T00:00:00Z, a date, or a duration such as 2h (${direction < 0 ? "2 hours ago" : "2 hours from now"}); got "${text}"`,
  );
}

/** Maximum distance from now: 2,000 years, in milliseconds. */
const MAX_DISTANCE = 2000 * 366 * 86_400_000;

/**
 * Returns the seconds in a number of seconds or a duration. Throws a usage error for any other text, and above `max`.
 * @example
 * parseSeconds("--wait", "2h", 86_400); // 7200
 */
export function parseSeconds(flag: string, text: string, max: number): number {
  const ms = /^\d{1,9}$/.test(text) ? Number(text) * 1000 : parseDuration(text);
  if (ms === null || ms > max * 1000)
    throw usageError(`${flag} must be seconds or a duration such as 2h, at most ${max} seconds; got "${text}"`);
  return Math.ceil(ms / 1000);
}
