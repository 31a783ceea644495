/**
 * Computes how many requests for approval a key may make in one hour, from its usual number per hour. Depends only on
 * recorded decisions, so that every process and the audit agree.
 */

export const HOUR_MS = 3_600_000;
/** Length of the period, before the current hour, from which the usual number per hour is computed. Milliseconds. */
const MEASURED_MS = 7 * 24 * HOUR_MS;
/** Minimum number of hours with requests. With fewer hours, a key has no usual rate yet. */
const MIN_HOURS = 3;
/**
 * Maximum number of requests from which the usual number is computed. Older requests are ignored, which limits the time
 * of a decision.
 */
export const MAX_MEASURED_REQUESTS = 10_000;

/** Number of requests for approval, and number of clock hours in which they were made. */
export interface RequestRate {
  requests: number;
  hours: number;
}

export interface ThrottleSettings {
  /** Factor by which a key may exceed its usual number of requests per hour. */
  times: number;
  /** Number of requests per hour that is never throttled. */
  minimum: number;
}

/**
 * Returns the start of the current hour (UTC), and the start of the period from which the usual number is computed.
 * Milliseconds.
 */
export function throttlePeriod(now: number): { hour: number; since: number } {
  const hour = Math.floor(now / HOUR_MS) * HOUR_MS;
  return { hour, since: hour - MEASURED_MS };
}

/**
 * Returns the number of requests for approval that the key may make in the current hour; null if it has no usual rate.
 * @example throttleLimit({ requests: 30, hours: 10 }, { times: 10, minimum: 20 }) // 30
 */
export function throttleLimit(usual: RequestRate, { times, minimum }: ThrottleSettings): number | null {
  if (usual.hours < MIN_HOURS) return null;
  return Math.max(minimum, Math.ceil((times * usual.requests) / usual.hours));
}
