/** Computes where hours, days, weeks and months begin in a time zone. Instants are milliseconds since the epoch. */
import { parseRfc3339, utcOffset } from "../../src/core.ts";

export type Interval = "hour" | "day" | "week" | "month";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

/** Parses a time of a query; null if it is absent. */
export function readInstant(text: string | undefined): number | null {
  return text === undefined ? null : parseRfc3339(text);
}

interface Zone {
  readonly name: string;
  /** Local time minus UTC at an instant, in milliseconds. */
  offset(at: number): number;
}

/** Returns null if the runtime's time zone data does not contain the name. */
export function findTimeZone(name: string): Zone | null {
  try {
    utcOffset(name, 0);
  } catch {
    return null;
  }
  // Keep the requested name, because the runtime returns older names, such as Asia/Calcutta for Asia/Kolkata.
  return { name, offset: (at) => utcOffset(name, at) };
}

/** Returns the first instant of a local day, which is after 00:00 if clocks are set forward at midnight. */
function startOfDay(zone: Zone, midnight: number): number {
  const [before, after] = [midnight - zone.offset(midnight - DAY), midnight - zone.offset(midnight + DAY)];
  const starts = [before, after].filter((at) => at + zone.offset(at) === midnight);
  return starts.length > 0 ? Math.min(...starts) : before;
}

/**
 * Returns the start of the day, week or month that contains `local`. Both are local times, encoded as UTC milliseconds.
 */
function startOfInterval(local: number, interval: Exclude<Interval, "hour">): number {
  const day = Math.floor(local / DAY) * DAY;
  const date = new Date(day);
  if (interval === "day") return day;
  // Monday (ISO 8601).
  if (interval === "week") return day - ((date.getUTCDay() + 6) % 7) * DAY;
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1);
}

function startOfNextInterval(midnight: number, interval: Exclude<Interval, "hour">): number {
  const date = new Date(midnight);
  if (interval === "month") return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1);
  return midnight + (interval === "week" ? 7 : 1) * DAY;
}

/** Returns `since`, every start of an interval after it, and `until`; null if there are more than `max` intervals. */
export function intervalBoundaries(
  since: number,
  until: number,
  interval: Interval,
  zone: Zone,
  max: number,
): number[] | null {
  const boundaries = [since];
  const add = (at: number): boolean => {
    // A time zone that crosses the date line skips a local day. The skipped day would begin at the same instant as the
    // next day, so leave it out.
    if (at > (boundaries.at(-1) as number)) boundaries.push(at);
    return boundaries.length <= max;
  };
  if (interval === "hour") {
    for (let at = since; ;) {
      const local = at + zone.offset(at);
      const next = at + HOUR - (((local % HOUR) + HOUR) % HOUR);
      if (next >= until) break;
      if (!add(next)) return null;
      at = next;
    }
  } else {
    for (
      let midnight = startOfNextInterval(startOfInterval(since + zone.offset(since), interval), interval);
      ;
      midnight = startOfNextInterval(midnight, interval)
    ) {
      const at = startOfDay(zone, midnight);
      if (at >= until) break;
      if (!add(at)) return null;
    }
  }
  boundaries.push(until);
  return boundaries;
}
