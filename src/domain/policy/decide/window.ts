/** Windows of limits: so long until now, or the hour, day, week or month of a calendar. */
import { parseDuration } from "../../time.ts";

export type CalendarUnit = "hour" | "day" | "week" | "month";
export type Window = { kind: "sliding"; ms: number } | { kind: "calendar"; unit: CalendarUnit; zone: string };

const UNITS: readonly string[] = ["hour", "day", "week", "month"];
const HOUR = 3_600_000;
const DAY = 24 * HOUR;
/** Of clocks. */
const LONGEST_CHANGE = 3 * HOUR;
/** No longer period of the unit exists, a change of the clocks included. */
const LONGEST: Readonly<Record<CalendarUnit, number>> = {
  hour: 2 * HOUR,
  day: DAY + LONGEST_CHANGE,
  week: 7 * DAY + LONGEST_CHANGE,
  month: 31 * DAY + LONGEST_CHANGE,
};
const MIN_WINDOW = 1_000;
const MAX_WINDOW = 366 * DAY;

/** What is wrong, as text, for anything else than `90s` to `366d`, `hour`, `day`, `week` or `month`. */
export function parseWindow(text: string, zone: string | undefined): Window | string {
  if (UNITS.includes(text)) {
    if (zone !== undefined && !isZone(zone)) return `"${zone}" is not a time zone such as Europe/Berlin`;
    return { kind: "calendar", unit: text as CalendarUnit, zone: zone ?? "UTC" };
  }
  if (zone !== undefined)
    return "time_zone has no meaning with a window that slides; use it with hour, day, week or month";
  const ms = parseDuration(text);
  if (ms === null) return `"${text}" is not a window such as 1h, 24h, 7d, day or month`;
  return ms < MIN_WINDOW || ms > MAX_WINDOW ? `"${text}" does not lie between 1s and 366d` : { kind: "sliding", ms };
}

function isZone(zone: string): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone: zone });
    return true;
  } catch {
    return false;
  }
}

/** The first instant that counts. Milliseconds, like `now`. */
export function startOfWindow(window: Window, now: number): number {
  if (window.kind === "sliding") return now - window.ms + 1;
  const local = now + offsetAt(window.zone, now);
  const start = startOf(window.unit, local);
  // The zone's offset may have been different then, so it is looked up again at the resulting instant.
  const guess = start - offsetAt(window.zone, now);
  const exact = start - offsetAt(window.zone, guess);
  if (window.unit === "hour") return Math.min(exact, now);
  // Where clocks go back over midnight it comes twice, and the day begins with the first.
  const first = start - offsetAt(window.zone, exact - LONGEST_CHANGE);
  const twice = first < exact && first + offsetAt(window.zone, first) === start;
  return Math.min(twice ? first : exact, now);
}

/** When a use of now stops counting in every window; for calendars a little later than necessary. */
export function endOfWindow(window: Window, now: number): number {
  return window.kind === "sliding" ? now + window.ms : startOfWindow(window, now) + LONGEST[window.unit];
}

/** Of a local time written as if it were UTC. Weeks begin on Monday (ISO 8601). */
function startOf(unit: CalendarUnit, local: number): number {
  const date = new Date(local);
  if (unit === "hour") return Math.floor(local / HOUR) * HOUR;
  const day = Math.floor(local / DAY) * DAY;
  if (unit === "day") return day;
  if (unit === "week") return day - ((date.getUTCDay() + 6) % 7) * DAY;
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1);
}

const formats = new Map<string, Intl.DateTimeFormat>();

/** Local time minus UTC. Milliseconds. */
function offsetAt(zone: string, at: number): number {
  if (zone === "UTC") return 0;
  let format = formats.get(zone);
  if (format === undefined) {
    format = new Intl.DateTimeFormat("en-US", {
      timeZone: zone,
      hourCycle: "h23",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
      second: "numeric",
    });
    formats.set(zone, format);
  }
  const parts = Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, Number(value)])) as Record<
    string,
    number
  >;
  const local = Date.UTC(
    parts["year"] ?? 0,
    (parts["month"] ?? 1) - 1,
    parts["day"],
    parts["hour"],
    parts["minute"],
    parts["second"],
  );
  return local - Math.floor(at / 1000) * 1000;
}
