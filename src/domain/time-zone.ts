/** Local time in named time zones, from the runtime's time zone data. */

const MAX_FORMATS = 64;
const formats = new Map<string, Intl.DateTimeFormat>();

/**
 * Returns the difference between local time and UTC at an instant, in milliseconds. Throws RangeError for an unknown
 * zone.
 * @param zone an IANA name such as `Europe/Berlin`
 * @param at the instant in milliseconds since the epoch
 * @example utcOffset("Asia/Kolkata", 0) // 19_800_000
 */
export function utcOffset(zone: string, at: number): number {
  if (zone === "UTC") return 0;
  const parts: Record<string, number> = {};
  for (const { type, value } of formatOf(zone).formatToParts(at)) parts[type] = Number(value);
  const field = (name: string): number => parts[name] as number;
  const local = Date.UTC(
    field("year"),
    field("month") - 1,
    field("day"),
    field("hour"),
    field("minute"),
    field("second"),
  );
  return local - Math.floor(at / 1000) * 1000;
}

/** Returns the instant of a local time. If the clocks skip the time, returns an instant after the gap. */
export function toInstant(zone: string, local: number): number {
  const guess = local - utcOffset(zone, local);
  const instant = local - utcOffset(zone, guess);
  const isSkipped = instant + utcOffset(zone, instant) !== local;
  // For a skipped time, the two instants use the offsets before and after the gap. The later one is after the gap.
  return isSkipped ? Math.max(guess, instant) : instant;
}

/** Returns true if the runtime knows the time zone. */
export function isTimeZone(zone: string): boolean {
  try {
    utcOffset(zone, 0);
    return true;
  } catch {
    return false;
  }
}

function formatOf(zone: string): Intl.DateTimeFormat {
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
    if (formats.size >= MAX_FORMATS) formats.clear();
    formats.set(zone, format);
  }
  return format;
}
