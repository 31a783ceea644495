/**
 * The service's clock. It returns the time of day, but never a time before the last ledger entry of any process.
 * Otherwise, if the time of day jumped ahead and back, entries would be out of order, and expired permits and approvals
 * would be valid again. While the last entry is ahead of the time of day, this clock continues from that entry at a
 * slower speed. If it stopped instead, nothing would expire during that time; at normal speed, it would stay ahead
 * forever.
 */
import type { Logger } from "../../contract/host.ts";

export interface LedgerClock {
  /** Returns the time in milliseconds since the epoch. */
  now(): number;
  /** Returns this machine's time of day, which can be earlier than `now`. */
  timeOfDay(): number;
  /** Reports the time of a new ledger entry. */
  observeEntryTime(at: number): void;
  /** Returns the milliseconds by which the clock is ahead of the time of day; usually 0. */
  ahead(): number;
}

/**
 * Speed while the clock is ahead. At this speed, the clock catches up a lead of a day in ten days, and an hour takes 67
 * minutes.
 */
const SLOWED_RATE = 0.9;
/**
 * A larger lead is logged as a warning. Smaller leads are normal, because clocks of several machines always differ a
 * little. Milliseconds.
 */
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
    timeOfDay,
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
