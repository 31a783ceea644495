/**
 * The service's clock: the time of day, but never earlier than the last entry of the ledger, whichever process wrote it. If
 * the time of day jumped ahead and back, entries would otherwise be out of order, and expired permits and approvals would be
 * valid again.
 * | While the last entry is ahead of the time of day, this clock continues from that entry, slower than real time. If it
 * stood still, nothing would expire meanwhile; at normal speed it would stay ahead forever.
 */
import type { Logger } from "../../contract/host.ts";

export interface LedgerClock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Reports that the ledger has an entry of this time. */
  saw(at: number): void;
  /** Returns how far the clock is ahead of the time of day. Milliseconds; usually 0. */
  ahead(): number;
}

/** Speed while the clock is ahead. It loses a day in ten days, and what should last an hour lasts 67 minutes. */
const PACE = 0.9;
/** Minimum lead that is logged, because clocks of several machines always differ a little. Milliseconds. */
const WORTH_TELLING = 2_000;

/** @param steady a monotonic clock in milliseconds */
export function createLedgerClock(
  timeOfDay: () => number,
  log: Pick<Logger, "warn">,
  steady: () => number = () => performance.now(),
): LedgerClock {
  let newest = { at: -Infinity, seen: 0 };
  let hasWarned = false;

  const least = (): number => Math.floor(newest.at + (steady() - newest.seen) * PACE);
  const ahead = (): number => Math.max(0, least() - timeOfDay());

  return {
    now: () => Math.max(timeOfDay(), least()),
    saw(at) {
      if (at > least()) newest = { at, seen: steady() };
      const ms = ahead();
      if (ms >= WORTH_TELLING && !hasWarned)
        log.warn(
          "the last entry of the ledger lies ahead of this machine's clock; the ledger's clock goes on from it",
          {
            ahead_seconds: Math.round(ms / 1000),
          },
        );
      hasWarned = ms >= WORTH_TELLING;
    },
    ahead,
  };
}
