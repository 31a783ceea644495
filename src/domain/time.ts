/** RFC 3339, UTC, milliseconds. */
export function toRfc3339(ms: number): string {
  return new Date(ms).toISOString();
}

const RFC3339 = /^(\d{4})-(\d{2})-(\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?([Zz]|[+-]\d{2}:\d{2})$/;

/** Milliseconds since the epoch; null unless RFC 3339 with an offset. Fractions are cut to milliseconds. */
export function parseRfc3339(text: string): number | null {
  const found = RFC3339.exec(text);
  if (found === null) return null;
  const [, year, month, day, hour, minute, second] = found.map(Number);
  const inMonth = new Date(Date.UTC(2000, month as number, 0));
  inMonth.setUTCFullYear(year as number, month as number, 0);
  if ((month as number) < 1 || (month as number) > 12 || (day as number) < 1 || (day as number) > inMonth.getUTCDate()) return null;
  if ((hour as number) > 23 || (minute as number) > 59 || (second as number) > 59) return null;
  const at = new Date(0);
  at.setUTCFullYear(year as number, (month as number) - 1, day);
  at.setUTCHours(hour as number, minute, second, Number((found[7] ?? "0").padEnd(3, "0").slice(0, 3)));
  const zone = found[8] as string;
  if (zone === "Z" || zone === "z") return at.getTime();
  const hours = Number(zone.slice(1, 3));
  const minutes = Number(zone.slice(4, 6));
  if (hours > 23 || minutes > 59) return null;
  return at.getTime() - (zone.startsWith("-") ? -1 : 1) * (hours * 60 + minutes) * 60_000;
}

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Milliseconds of `90s`, `30m`, `1h30m`, `7d`, `500ms`; null for anything else. */
export function parseDuration(text: string): number | null {
  if (!/^(?:\d{1,9}(?:ms|s|m|h|d)){1,5}$/.test(text)) return null;
  let total = 0;
  for (const [, amount, unit] of text.matchAll(/(\d+)(ms|s|m|h|d)/g)) total += Number(amount) * (UNITS[unit as string] as number);
  return Number.isSafeInteger(total) ? total : null;
}
