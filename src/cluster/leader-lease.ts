/**
 * Work that one process does for all. The process that holds the store's lease does it; when it dies or hangs the lease
 * ends and another takes over. Work under a lease must be safe to do twice: a process that was suspended for longer
 * than its lease does not know that it has lost it.
 */
import type { LeaderLease } from "../contract/host.ts";
import type { Storage } from "../contract/storage.ts";

/** How long another process waits for one that is gone. Milliseconds. */
const TERM = 15_000;
/** A lease that ends sooner than this is taken anew. */
const RENEW = 10_000;

/** `steady` is a clock that nobody sets: what counts is how long ago the lease was asked for, and not what time it is. Milliseconds. */
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
      // Nobody else has the store.
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
