/**
 * The service's clock: the time of day, and never before the last entry of the ledger, whoever wrote it. A time of day
 * that jumps ahead and back again would else write a history that runs backwards, and make good what had expired.
 *
 * Where the last entry lies ahead of the time of day this clock goes on from there, somewhat more slowly, until the
 * time of day has caught up: standing still, it would let nothing expire for as long; as fast as others, it would stay
 * ahead for good.
 */
import type { Logger } from "../../contract/host.ts";

export interface LedgerClock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Tells it that the ledger has an entry of this time. */
  saw(at: number): void;
  /** By how much it is ahead of the time of day. Milliseconds; mostly 0. */
  ahead(): number;
}

/** So much of a second passes in one while it is ahead: a day is worked off in ten. What is to last an hour lasts 67 minutes. */
const PACE = 0.9;
/** Clocks of machines that share a ledger differ; more than this is worth a word. Milliseconds. */
const WORTH_TELLING = 2_000;

/** @param steady a clock that nobody sets, in milliseconds since any moment */
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
