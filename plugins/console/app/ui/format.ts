/**
 * Formats text for people. Text from outside passes through `markText`, so that it cannot hide, reorder or imitate the
 * text around it.
 */
import { renderMarkedText, markText } from "../../../../src/browser.ts";

export { markText };

/** Returns text from outside without markup, for titles and labels. */
export function renderPlain(value: unknown): string {
  return renderMarkedText(String(value));
}

/**
 * Formats a duration: "3 min 20 s", "12 min", "2 h 5 min" or "4 d 3 h".
 * @param ms milliseconds
 */
export function formatDuration(ms: number): string {
  const s = Math.max(0, Math.floor(ms / 1000));
  const [d, h, m] = [Math.floor(s / 86_400), Math.floor(s / 3600) % 24, Math.floor(s / 60) % 60];
  const parts = partsOf(d, h, m, s % 60);
  return parts
    .filter(([count], i) => i === 0 || count > 0)
    .map(([count, unit]) => `${count} ${unit}`)
    .join(" ");
}

function partsOf(d: number, h: number, m: number, s: number): [number, string][] {
  if (d > 0) return [[d, "d"], [h, "h"]]; // prettier-ignore
  if (h > 0) return [[h, "h"], [m, "min"]]; // prettier-ignore
  if (m >= 10) return [[m, "min"]];
  if (m > 0) return [[m, "min"], [s, "s"]]; // prettier-ignore
  return [[s, "s"]];
}

/**
 * Formats a duration as one number for narrow columns: "45s", "12m", "5h", "3d".
 * @param ms milliseconds
 */
export function formatShortDuration(ms: number): string {
  const s = Math.max(0, Math.floor(ms / 1000));
  if (s < 60) return `${s}s`;
  if (s < 3600) return `${Math.floor(s / 60)}m`;
  return s < 86_400 ? `${Math.floor(s / 3600)}h` : `${Math.floor(s / 86_400)}d`;
}

const local = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

const localDay = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });

/** Formats the day of an RFC 3339 time in the reader's time zone and language. */
export const formatDay = (rfc3339: string): string => localDay.format(Date.parse(rfc3339));

/** Formats an RFC 3339 time in the reader's time zone and language. */
export function formatTime(rfc3339: string): string {
  const time = Date.parse(rfc3339);
  return Number.isNaN(time) ? rfc3339 : local.format(time);
}

/**
 * Formats a time as the value of a datetime-local input: local time without seconds.
 * @param ms milliseconds since 1970
 */
export function toLocalInput(ms: number): string {
  const local = new Date(ms - new Date(ms).getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, 16);
}

/** Shortens the ids in a text to their last characters. */
export function shortenIds(text: string): string {
  return text.replaceAll(/\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{6}([0-9a-f]{6})\b/g, "…$1");
}

/** Splits a hand-typed list at spaces and commas. */
export function splitList(text: string): string[] {
  return text.split(/[\s,]+/).filter((item) => item !== "");
}

/** Returns the provider that manages a user, such as "okta (SCIM)" for `scim:okta`. */
export function formatManager(managedBy: string): string {
  const [, kind, id = managedBy] = /^(oidc|scim):(.*)$/.exec(managedBy) ?? [];
  return kind === "scim" ? `${id} (SCIM)` : id;
}

/** Returns what limits cover, such as "agents a, b with tool crm"; an empty text if they cover everything. */
export function formatPatterns({ agents, tools }: Record<"agents" | "tools", readonly string[] | null>): string {
  const name = (one: string, patterns: readonly string[] | null): string[] =>
    patterns === null ? [] : [`${one}${patterns.length === 1 ? "" : "s"} ${patterns.join(", ")}`];
  return [...name("agent", agents), ...name("tool", tools)].join(" with ");
}

/** Returns "1 request" or "1,204 requests". */
export function formatCounted(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}
