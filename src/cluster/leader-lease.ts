/**
 * A lease on a background job that only one of the processes sharing the store runs. If the holder dies or hangs, the
 * lease expires and another process takes over. The work must be safe to do twice, because a process that was suspended
 * for longer than its lease does not know that it lost the lease.
 */
import type { LeaderLease } from "../contract/core-host.ts";
import type { Storage } from "../contract/storage.ts";

/** Lease duration, and so the longest time until another process takes over from a dead one. Milliseconds. */
const TERM = 15_000;
/** Remaining time below which a lease is renewed. Milliseconds. */
const RENEW = 10_000;

/** @param steady a monotonic clock in milliseconds. Adjustments of the wall clock must not extend a lease */
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
      // No other process can open the store.
      if (storage.exclusive) return true;
      if (released) return false;
      const now = steady();
      if (until - now > RENEW) return true;
      const end = now + TERM;
      until = (await storage.lease(name, holder, TERM)) ? end : -Infinity;
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
