/**
 * Calendar fields of a timestamp. The library's versions use the process's time zone, so two servers could decide
 * differently in the hour that daylight saving skips. See the CEL language definition, "Timezones".
 */
import { utcOffset } from "../../time-zone.ts";

/** Returns the local wall-clock time in the fields of a UTC date. Throws RangeError for an unknown zone. */
export function wallClock(ms: number, zone: string | undefined): Date {
  if (zone === undefined || zone === "UTC") return new Date(ms);
  const fixed = /^([+-]?)(\d\d):(\d\d)$/.exec(zone);
  if (fixed === null) return new Date(ms + utcOffset(zone, ms));
  const offset = (Number(fixed[2]) * 60 + Number(fixed[3])) * 60_000;
  return new Date(fixed[1] === "-" ? ms - offset : ms + offset);
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
