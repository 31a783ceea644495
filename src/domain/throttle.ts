/**
 * How many requests for approval a key may make in one hour, compared with its usual hour. Depends only on recorded
 * decisions, so that every process and the audit agree.
 */

export const HOUR_MS = 3_600_000;
/** The usual hour is measured over this time before the current hour. */
const MEASURED_MS = 7 * 24 * HOUR_MS;
/** With fewer hours of requests, no rate is usual yet. */
const MIN_HOURS = 3;
/** Requests of which the usual hour is measured: the newest ones. Bounds the time of a decision. */
export const MAX_MEASURED = 10_000;

/** Requests for approval, and the number of hours of the clock in which they were made. */
export interface RequestRate {
  requests: number;
  hours: number;
}

export interface ThrottleSettings {
  /** How many times its usual number of requests a key may make in one hour. */
  times: number;
  /** Requests in one hour that are never throttled. */
  minimum: number;
}

/** Returns the start of the current hour, and of the time over which the usual hour is measured. UTC, milliseconds. */
export function throttlePeriod(now: number): { hour: number; since: number } {
  const hour = Math.floor(now / HOUR_MS) * HOUR_MS;
  return { hour, since: hour - MEASURED_MS };
}

/**
 * Returns how many requests for approval the key may make in the current hour; null if it has no usual rate.
 * @example throttleLimit({ requests: 30, hours: 10 }, { times: 10, minimum: 20 }) // 30
 */
export function throttleLimit(usual: RequestRate, { times, minimum }: ThrottleSettings): number | null {
  if (usual.hours < MIN_HOURS) return null;
  return Math.max(minimum, Math.ceil((times * usual.requests) / usual.hours));
}
