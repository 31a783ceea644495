/** Recomputes each throttling from the earlier decisions: its hour, its number of requests, and the usual rate. */
import { type DecisionEntry, parseEntryTime } from "../../src/core.ts";
import type { FeatureAuditor } from "../../src/plugin.ts";
import type { ThrottleEntry } from "./entry.ts";
import { HOUR_MS, MAX_MEASURED_REQUESTS, type RequestRate, throttleLimit, throttlePeriod } from "./rate.ts";

export function throttleAuditor(): FeatureAuditor {
  /**
   * For each key, the number of requests for approval in each hour. The inner map's keys are the starts of the hours,
   * ascending.
   */
  const requests = new Map<string, Map<number, number>>();
  let newest: DecisionEntry | null = null;

  function count({ submitted_by: { key_id }, at }: DecisionEntry): void {
    const { hour, since } = throttlePeriod(parseEntryTime(at));
    const hours = requests.get(key_id) ?? new Map<number, number>();
    requests.set(key_id, hours);
    for (const old of hours.keys()) if (old < since) hours.delete(old);
    hours.set(hour, (hours.get(hour) ?? 0) + 1);
  }

  function assertThrottle(entry: ThrottleEntry): void {
    const { at, until, related_action, submitted_by, requests: recorded, usual, times, minimum } = entry;
    const { hour, since } = throttlePeriod(parseEntryTime(at));
    if (newest?.action_id !== related_action || newest.submitted_by.key_id !== submitted_by.key_id)
      throw new RangeError(`the throttling of ${submitted_by.key_id} does not follow the request that caused it`);
    if (parseEntryTime(until) !== hour + HOUR_MS) throw new RangeError(`the throttling ends at ${until}`);
    const hours = requests.get(submitted_by.key_id) ?? new Map<number, number>();
    const measured = measure([...hours].filter(([start]) => start >= since && start < hour));
    if (usual.requests !== measured.requests || usual.hours !== measured.hours)
      throw new RangeError(
        `the key ${submitted_by.key_id} made ${measured.requests} requests in ${measured.hours} hours`,
      );
    const limit = throttleLimit(usual, { times, minimum });
    if (recorded !== limit || hours.get(hour) !== limit)
      throw new RangeError(
        `the key ${submitted_by.key_id} is throttled at ${recorded} requests; it made ${hours.get(hour) ?? 0} of ${limit ?? "any number"}`,
      );
  }

  return {
    check(entry) {
      if (entry.type === "throttle") assertThrottle(entry);
      newest = entry.type === "decision" && entry.status === "pending_approval" ? entry : null;
      if (newest !== null) count(newest);
    },
  };
}

/** Returns the rate of the newest requests, computed as the store does. */
function measure(hours: readonly (readonly [start: number, requests: number])[]): RequestRate {
  const rate: RequestRate = { requests: 0, hours: 0 };
  for (const [, requests] of hours.toReversed()) {
    if (rate.requests === MAX_MEASURED_REQUESTS) break;
    rate.requests = Math.min(MAX_MEASURED_REQUESTS, rate.requests + requests);
    rate.hours += 1;
  }
  return rate;
}
