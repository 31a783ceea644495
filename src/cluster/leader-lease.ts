/**
 * A lease on a background job that only one process of a store runs. If the holder dies or hangs, the lease expires and
 * another process takes over. The work must be safe to do twice, because a process that was suspended for longer than
 * its lease does not know that it lost the lease.
 */
import type { LeaderLease } from "../contract/core-host.ts";
import type { Storage } from "../contract/storage.ts";

/** Lease duration in milliseconds. If the holder dies, another process takes over after at most this time. */
const TERM_MS = 15_000;
/** Renewal threshold: a lease is renewed when its remaining time is shorter. Milliseconds. */
const RENEW = 10_000;

/** @param steady a monotonic clock in milliseconds, because adjustments of the wall clock must not extend a lease */
export function createLeaderLease(
  storage: Storage,
  name: string,
  holder: string,
  steady: () => number = () => performance.now(),
): LeaderLease {
  let until = -Infinity;
  let released = false;
  return {
    async isLeader() {
      // No other process can have opened the store.
      if (storage.exclusive) return true;
      if (released) return false;
      const now = steady();
      if (until - now > RENEW) return true;
      const end = now + TERM_MS;
      until = (await storage.lease(name, holder, TERM_MS)) ? end : -Infinity;
      return until > steady();
    },
    async release() {
      released = true;
      if (until === -Infinity || storage.exclusive) return;
      until = -Infinity;
      await storage.release(name, holder);
    },
  };
}
