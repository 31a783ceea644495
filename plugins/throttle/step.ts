/** Refuses requests for approval of a key that makes many times more of them than usual. */
import { type ApprovalSubmission, type DecisionStep, type LedgerTransaction, toActor } from "../../src/core.ts";
import { Refusal, toRfc3339 } from "../../src/plugin.ts";
import { THROTTLED } from "./errors.ts";
import type { ThrottleOptions } from "./options.ts";
import { HOUR_MS, MAX_MEASURED_REQUESTS, type RequestRate, throttleLimit, throttlePeriod } from "./rate.ts";

/**
 * Refuses a submission if its key has used up its requests for approval in this hour. If it is the last allowed request,
 * records that the key is throttled until the end of the hour. Runs under the ledger's lock, so the count is exact.
 */
export function throttleStep(options: ThrottleOptions): DecisionStep {
  const rates = new UsualRates();
  return { name: "throttle", tighten: (tx, submission) => throttle(tx, submission, options, rates) };
}

/**
 * The usual rates of keys. They are constant for the current hour, because they count only requests of earlier hours.
 */
class UsualRates {
  private hour = NaN;
  private readonly rates = new Map<string, RequestRate>();

  /** Returns the rates that are known in this hour, by key. */
  in(hour: number): Map<string, RequestRate> {
    if (hour !== this.hour) this.rates.clear();
    this.hour = hour;
    return this.rates;
  }
}

async function throttle(
  tx: LedgerTransaction,
  { credential: { key, principal }, id, agent_id }: ApprovalSubmission,
  options: ThrottleOptions,
  usualRates: UsualRates,
): Promise<(() => void) | null> {
  const { times, minimum } = options;
  const { hour, since } = throttlePeriod(tx.now);
  const rates = usualRates.in(hour);
  const until = hour + HOUR_MS;
  /** Returns true if the key made fewer requests in this hour. */
  const isBelow = (limit: number): Promise<boolean> =>
    tx.isBelow(
      `approval requests ${key.id} ${hour}`,
      limit,
      async () => (await tx.approvalRequests(key.id, hour, until, limit)).requests,
    );
  let usual = rates.get(key.id);
  if (usual === undefined) {
    // Most keys are below the minimum, so their history does not have to be read.
    if (await isBelow(minimum - 1)) return null;
    usual = await tx.approvalRequests(key.id, since, hour, MAX_MEASURED_REQUESTS);
    rates.set(key.id, usual);
  }
  const limit = throttleLimit(usual, options);
  if (limit === null || (await isBelow(limit - 1))) return null;
  const { requests } = await tx.approvalRequests(key.id, hour, until, limit);
  if (requests >= limit)
    throw new Refusal(
      THROTTLED,
      `the key "${key.name}" made ${requests} requests for approval in this hour; it usually makes ${Math.round(usual.requests / usual.hours)} per hour. Wait until ${toRfc3339(until)}; actions that need no approval are still decided`,
      { headers: { "Retry-After": String(Math.ceil((until - tx.now) / 1000)) } },
    );
  return () =>
    void tx.record({
      type: "throttle",
      v: 1,
      at: toRfc3339(tx.now),
      agent_id,
      related_action: id,
      requests: limit,
      usual,
      times,
      minimum,
      until: toRfc3339(until),
      submitted_by: toActor(key, principal),
    });
}
