/**
 * Converts between external times, which are RFC 3339 strings, and internal times, which are milliseconds since the
 * epoch.
 */
const FIRST_MS = -62_167_219_200_000;
const LAST_MS = 253_402_300_799_999;

/**
 * Formats a time as UTC with milliseconds. Throws RangeError outside the years 0000 to 9999, which RFC 3339 cannot
 * represent.
 * @example
 * toRfc3339(0); // "1970-01-01T00:00:00.000Z"
 */
export function toRfc3339(ms: number): string {
  // Cache the last two results, because the rows, entries and responses of a batch use only two times.
  if (ms === newest.ms) return newest.text;
  if (ms === older.ms) return older.text;
  if (!(ms >= FIRST_MS && ms <= LAST_MS)) throw new RangeError(`${ms} ms is outside the years 0000 to 9999`);
  older = newest;
  newest = { ms, text: new Date(ms).toISOString() };
  return newest.text;
}

let newest = { ms: Number.NaN, text: "" };
let older = newest;

const RFC3339 = /^(\d{4})-(\d{2})-(\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?([Zz]|[+-]\d{2}:\d{2})$/;

/**
 * Parses RFC 3339 with an offset. Returns milliseconds since the epoch; null if the string is not valid. Truncates to
 * milliseconds. Rejects leap seconds (`:60`), which POSIX time cannot represent.
 * @example
 * parseRfc3339("1970-01-01T01:00:00+01:00"); // 0
 */
export function parseRfc3339(text: string): number | null {
  const match = RFC3339.exec(text);
  if (match === null) return null;
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  const at = new Date(0);
  at.setUTCFullYear(year, month - 1, day);
  // For a month or day that does not exist, Date continues with the next month.
  if (at.getUTCMonth() !== month - 1 || at.getUTCDate() !== day) return null;
  if (hour > 23 || minute > 59 || second > 59) return null;
  at.setUTCHours(hour, minute, second, Number((match[7] ?? "0").padEnd(3, "0").slice(0, 3)));
  const offset = offsetMs(match[8] as string);
  if (offset === null) return null;
  const ms = at.getTime() - offset;
  return ms >= FIRST_MS && ms <= LAST_MS ? ms : null;
}

/** Parses an entry's time into milliseconds. Throws RangeError if it is not RFC 3339. */
export function parseEntryTime(text: string): number {
  const ms = parseRfc3339(text);
  if (ms === null) throw new RangeError(`${JSON.stringify(text)} is not a valid time`);
  return ms;
}

function offsetMs(zone: string): number | null {
  if (zone === "Z" || zone === "z") return 0;
  const hours = Number(zone.slice(1, 3));
  const minutes = Number(zone.slice(4, 6));
  if (hours > 23 || minutes > 59) return null;
  return (zone.startsWith("-") ? -1 : 1) * (hours * 60 + minutes) * 60_000;
}

const DURATION = /^(?:(\d{1,9})d)?(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,9})s)?(?:(\d{1,9})ms)?$/;
const UNIT_MS = [86_400_000, 3_600_000, 60_000, 1000, 1] as const;

/**
 * Parses a duration such as `90s`, `30m`, `1h30m`, `7d` or `500ms` into milliseconds. Each unit can occur at most once,
 * largest unit first. Returns null for any other string.
 * @example
 * parseDuration("1h30m"); // 5400000
 */
export function parseDuration(text: string): number | null {
  const match = DURATION.exec(text);
  if (match === null || text === "") return null;
  let total = 0;
  UNIT_MS.forEach((unit, i) => {
    total += Number(match[i + 1] ?? 0) * unit;
  });
  return Number.isSafeInteger(total) ? total : null;
}
