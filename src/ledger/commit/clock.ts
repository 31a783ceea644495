/**
 * The service's clock: the time of day, but never earlier than the last entry of the ledger, whichever process wrote
 * it. If the time of day jumped ahead and back, entries would otherwise be out of order, and expired permits and
 * approvals would be valid again. While the last entry is ahead of the time of day, this clock continues from that
 * entry at a slower speed. If it stopped, nothing would expire meanwhile; at normal speed, it would remain ahead
 * forever.
 */
import type { Logger } from "../../contract/host.ts";

export interface LedgerClock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Reports the time of a new ledger entry. */
  observeEntryTime(at: number): void;
  /** Returns by how much the clock is ahead of the time of day. Milliseconds; usually 0. */
  ahead(): number;
}

/**
 * Speed while the clock is ahead. A lead of a day is gone after ten days, and an interval of an hour takes 67 minutes.
 */
const SLOWED_RATE = 0.9;
/** Lead above which a warning is logged. Clocks of several machines always differ a little. Milliseconds. */
const MIN_LOGGED_LEAD_MS = 2_000;

/** @param steady a monotonic clock in milliseconds */
export function createLedgerClock(
  timeOfDay: () => number,
  log: Pick<Logger, "warn">,
  steady: () => number = () => performance.now(),
): LedgerClock {
  let newest = { at: -Infinity, seen: 0 };
  let hasWarned = false;

  const earliestNow = (): number => Math.floor(newest.at + (steady() - newest.seen) * SLOWED_RATE);
  const ahead = (): number => Math.max(0, earliestNow() - timeOfDay());

  return {
    now: () => Math.max(timeOfDay(), earliestNow()),
    observeEntryTime(at) {
      if (at > earliestNow()) newest = { at, seen: steady() };
      const ms = ahead();
      if (ms >= MIN_LOGGED_LEAD_MS && !hasWarned)
        log.warn(
          "the last entry of the ledger is later than this machine's clock; the ledger's clock continues from that entry",
          {
            ahead_seconds: Math.round(ms / 1000),
          },
        );
      hasWarned = ms >= MIN_LOGGED_LEAD_MS;
    },
    ahead,
  };
}
