/** Throttles a key that requests approval many times more often than usual. */
import {
  type CoreHost,
  type LedgerTransaction,
  HOUR_MS,
  MAX_MEASURED_REQUESTS,
  type RequestRate,
  throttleLimit,
  throttlePeriod,
  toActor,
} from "../../src/core.ts";
import { type Credential, Refusal, toRfc3339 } from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";

/** Usage of a key that makes its last allowed request for approval in this hour. */
interface ThrottledUsage {
  requests: number;
  usual: RequestRate;
}

/**
 * Throws AGENT_THROTTLED if the key has used up its requests for approval in this hour. Returns the usage to record if
 * this is the last allowed request; else null. Runs under the ledger's lock, so the count is exact.
 */
export async function checkRequestRate(
  { config }: Pick<CoreHost, "config">,
  tx: LedgerTransaction,
  { key }: Credential,
): Promise<ThrottledUsage | null> {
  const settings = config.approvals.throttle;
  const { hour, since } = throttlePeriod(tx.now);
  // Most keys are below the minimum, so their history does not have to be read.
  const first = await tx.approvalRequests(key.id, hour, hour + HOUR_MS, settings.minimum);
  if (settings.times === 0 || first.requests + 1 < settings.minimum) return null;
  const usual = await tx.approvalRequests(key.id, since, hour, MAX_MEASURED_REQUESTS);
  const limit = throttleLimit(usual, settings);
  if (limit === null) return null;
  const { requests } = await tx.approvalRequests(key.id, hour, hour + HOUR_MS, limit);
  if (requests >= limit)
    throw new Refusal(
      "AGENT_THROTTLED",
      `the key "${key.name}" made ${requests} requests for approval in this hour; it usually makes ${Math.round(usual.requests / usual.hours)} per hour. Wait until ${toRfc3339(hour + HOUR_MS)}; actions that need no approval are still decided`,
      { headers: { "Retry-After": String(Math.ceil((hour + HOUR_MS - tx.now) / 1000)) } },
    );
  return requests + 1 === limit ? { requests: limit, usual } : null;
}

/**
 * Records that the key is throttled until the end of the hour. The preceding entry is the decision on the key's last
 * request.
 */
export function recordThrottle(
  { config }: Pick<CoreHost, "config">,
  tx: LedgerTransaction,
  { key, principal }: Credential,
  { id, agent_id }: Pick<ActionRow, "id" | "agent_id">,
  { requests, usual }: ThrottledUsage,
): void {
  const { times, minimum } = config.approvals.throttle;
  tx.record({
    type: "throttle",
    v: 1,
    at: toRfc3339(tx.now),
    agent_id,
    related_action: id,
    requests,
    usual,
    times,
    minimum,
    until: toRfc3339(throttlePeriod(tx.now).hour + HOUR_MS),
    submitted_by: toActor(key, principal),
  });
}
