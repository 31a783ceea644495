/** Where hours, days, weeks and months begin in a time zone. Instants are milliseconds since the epoch. */

export type Interval = "hour" | "day" | "week" | "month";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

export interface Zone {
  readonly name: string;
  /** Local time minus UTC at an instant, in milliseconds. */
  offset(at: number): number;
}

/** Null for a name that the runtime's time zone data does not know. */
export function zoneOf(name: string): Zone | null {
  let format: Intl.DateTimeFormat;
  try {
    format = new Intl.DateTimeFormat("en-US", {
      timeZone: name,
      hourCycle: "h23",
      era: "short",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
      second: "numeric",
    });
  } catch {
    return null;
  }
  return {
    // As it was asked for: the runtime answers with names of the past, Asia/Calcutta for Asia/Kolkata.
    name,
    offset(at) {
      const parts: Record<string, string> = {};
      for (const { type, value } of format.formatToParts(at)) parts[type] = value;
      const local = Date.UTC(
        Number(parts["year"]),
        Number(parts["month"]) - 1,
        Number(parts["day"]),
        Number(parts["hour"]),
        Number(parts["minute"]),
        Number(parts["second"]),
      );
      return local - Math.floor(at / 1000) * 1000;
    },
  };
}

/** The first instant of a local day. Clocks may go forward over midnight: the day then begins later than 00:00. */
function startOfDay(zone: Zone, midnight: number): number {
  const [before, after] = [midnight - zone.offset(midnight - DAY), midnight - zone.offset(midnight + DAY)];
  const starts = [before, after].filter((at) => at + zone.offset(at) === midnight);
  return starts.length > 0 ? Math.min(...starts) : before;
}

/** Local midnight, written as if it were UTC, of the interval that a local time lies in. */
function floor(local: number, interval: Exclude<Interval, "hour">): number {
  const day = Math.floor(local / DAY) * DAY;
  const date = new Date(day);
  if (interval === "day") return day;
  // Monday (ISO 8601).
  if (interval === "week") return day - ((date.getUTCDay() + 6) % 7) * DAY;
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1);
}

function following(midnight: number, interval: Exclude<Interval, "hour">): number {
  const date = new Date(midnight);
  if (interval === "month") return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1);
  return midnight + (interval === "week" ? 7 : 1) * DAY;
}

/** `since`, every start of an interval after it, `until`. Null when there would be more than `most` intervals. */
export function boundariesOf(
  since: number,
  until: number,
  interval: Interval,
  zone: Zone,
  most: number,
): number[] | null {
  const boundaries = [since];
  const take = (at: number): boolean => {
    // Not twice: a zone that moves over the date line skips a day, which then begins when the next one does.
    if (at > (boundaries.at(-1) as number)) boundaries.push(at);
    return boundaries.length <= most;
  };
  if (interval === "hour") {
    for (let at = since; ;) {
      const local = at + zone.offset(at);
      const next = at + HOUR - (((local % HOUR) + HOUR) % HOUR);
      if (next >= until) break;
      if (!take(next)) return null;
      at = next;
    }
  } else {
    for (
      let midnight = following(floor(since + zone.offset(since), interval), interval);
      ;
      midnight = following(midnight, interval)
    ) {
      const at = startOfDay(zone, midnight);
      if (at >= until) break;
      if (!take(at)) return null;
    }
  }
  boundaries.push(until);
  return boundaries;
}
