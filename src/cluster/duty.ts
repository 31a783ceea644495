/**
 * Work that one process does for all. The process that holds the store's lease does it; when it dies or hangs
 * the lease ends and another takes over. What is done under it must bear to be done twice: a process that was
 * stopped for longer than its lease wakes up and does not know.
 */
import type { Duty } from "../contract/host.ts";
import type { Storage } from "../contract/storage.ts";

/** How long another process waits for one that is gone. Milliseconds. */
const TERM = 15_000;
/** A lease that ends sooner than this is taken anew. */
const RENEW = 10_000;

export function createDuty(storage: Storage, name: string, holder: string, clock: () => number): Duty {
  let until = -Infinity;
  let released = false;
  return {
    async mine() {
      // Nobody else has the store.
      if (storage.exclusive) return true;
      if (released) return false;
      const now = clock();
      if (until - now > RENEW) return true;
      const end = now + TERM;
      until = (await storage.lease(name, holder, now, end)) ? end : -Infinity;
      return until > now;
    },
    async release() {
      released = true;
      if (until === -Infinity || storage.exclusive) return;
      until = -Infinity;
      await storage.lease(name, holder, clock(), 0);
    },
  };
}
