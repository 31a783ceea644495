/**
 * Calendar fields of a timestamp. The library's versions use the process's time zone, so two servers could decide
 * differently in the hour that daylight saving skips. See the CEL language definition, "Timezones".
 */

/** Returns the local wall-clock time in the fields of a UTC date. Throws RangeError for an unknown zone. */
export function wallClock(ms: number, zone: string | undefined): Date {
  if (zone === undefined || zone === "UTC") return new Date(ms);
  const fixed = /^([+-]?)(\d\d):(\d\d)$/.exec(zone);
  if (fixed === null) return namedZone(ms, zone);
  const offset = (Number(fixed[2]) * 60 + Number(fixed[3])) * 60_000;
  return new Date(fixed[1] === "-" ? ms - offset : ms + offset);
}

const MAX_FORMATS = 64;
const formats = new Map<string, Intl.DateTimeFormat>();

function namedZone(ms: number, zone: string): Date {
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
  const parts: Record<string, number> = {};
  for (const { type, value } of format.formatToParts(ms)) parts[type] = Number(value);
  const field = (name: string): number => parts[name] as number;
  return new Date(
    Date.UTC(
      field("year"),
      field("month") - 1,
      field("day"),
      field("hour"),
      field("minute"),
      field("second"),
      new Date(ms).getUTCMilliseconds(),
    ),
  );
}

export const CALENDAR: Readonly<Record<string, (date: Date) => number>> = {
  getFullYear: (date) => date.getUTCFullYear(),
  getMonth: (date) => date.getUTCMonth(),
  getDate: (date) => date.getUTCDate(),
  getDayOfMonth: (date) => date.getUTCDate() - 1,
  getDayOfWeek: (date) => date.getUTCDay(),
  getDayOfYear: (date) => Math.floor((date.getTime() - Date.UTC(date.getUTCFullYear(), 0, 1)) / 86_400_000),
  getHours: (date) => date.getUTCHours(),
  getMinutes: (date) => date.getUTCMinutes(),
  getSeconds: (date) => date.getUTCSeconds(),
  getMilliseconds: (date) => date.getUTCMilliseconds(),
};
