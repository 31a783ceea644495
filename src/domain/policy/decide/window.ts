/** Time windows of limits and histories: a sliding duration, or a calendar hour, day, week or month. */
import { isTimeZone, utcOffset } from "../../time-zone.ts";
import { parseDuration } from "../../time.ts";

type CalendarUnit = "hour" | "day" | "week" | "month";
export type TimeWindow = { kind: "sliding"; ms: number } | { kind: "calendar"; unit: CalendarUnit; zone: string };

const UNITS: readonly string[] = ["hour", "day", "week", "month"];
const HOUR = 3_600_000;
const DAY = 24 * HOUR;
/**
 * Largest change of a UTC offset that calendar windows support. Daylight saving changes the offset by at most 2 hours.
 * Milliseconds.
 */
const LONGEST_CHANGE = 3 * HOUR;
/** Upper bound of each unit's length, including a change of the UTC offset. Milliseconds. */
const LONGEST: Readonly<Record<CalendarUnit, number>> = {
  hour: 2 * HOUR,
  day: DAY + LONGEST_CHANGE,
  week: 7 * DAY + LONGEST_CHANGE,
  month: 31 * DAY + LONGEST_CHANGE,
};
const MIN_WINDOW = 1_000;
const MAX_WINDOW = 366 * DAY;

/** Parses `1s` to `366d`, `hour`, `day`, `week` or `month`. Returns an error message if the string is not valid. */
export function parseWindow(text: string, zone: string | undefined): TimeWindow | string {
  if (UNITS.includes(text)) {
    if (zone !== undefined && !isTimeZone(zone)) return `"${zone}" is not a time zone such as Europe/Berlin`;
    return { kind: "calendar", unit: text as CalendarUnit, zone: zone ?? "UTC" };
  }
  if (zone !== undefined)
    return "time_zone has no meaning with a window that slides; use it with hour, day, week or month";
  const ms = parseDuration(text);
  if (ms === null) return `"${text}" is not a window such as 1h, 24h, 7d, day or month`;
  return ms < MIN_WINDOW || ms > MAX_WINDOW ? `"${text}" is not between 1s and 366d` : { kind: "sliding", ms };
}

/** Returns the start of the window. Milliseconds. */
export function startOfWindow(window: TimeWindow, now: number): number {
  if (window.kind === "sliding") return now - window.ms + 1;
  const local = now + utcOffset(window.zone, now);
  const start = startOf(window.unit, local);
  // The zone's offset can be different at the start of the window, so look it up for that time too.
  const guess = start - utcOffset(window.zone, now);
  const exact = start - utcOffset(window.zone, guess);
  if (window.unit === "hour") return Math.min(exact, now);
  // If clocks go back over midnight, midnight occurs twice. The day begins with the first occurrence.
  const first = start - utcOffset(window.zone, exact - LONGEST_CHANGE);
  const twice = first < exact && first + utcOffset(window.zone, first) === start;
  return Math.min(twice ? first : exact, now);
}

/** Returns an upper bound of the window's length. Milliseconds. */
export function longestWindow(window: TimeWindow): number {
  return window.kind === "sliding" ? window.ms : LONGEST[window.unit];
}

/** Returns the expiry of a use at `now`. For calendar windows, the result is an upper bound. */
export function endOfWindow(window: TimeWindow, now: number): number {
  return window.kind === "sliding" ? now + window.ms : startOfWindow(window, now) + LONGEST[window.unit];
}

/**
 * Returns the start of the unit. The local time and the result are expressed as UTC. Weeks begin on Monday (ISO 8601).
 */
function startOf(unit: CalendarUnit, local: number): number {
  const date = new Date(local);
  if (unit === "hour") return Math.floor(local / HOUR) * HOUR;
  const day = Math.floor(local / DAY) * DAY;
  if (unit === "day") return day;
  if (unit === "week") return day - ((date.getUTCDay() + 6) % 7) * DAY;
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1);
}
