/**
 * Lets reads that nobody waits for under a lock run one slice at a time: an embedded store answers at once, so many
 * readers together would otherwise keep the event loop from decisions and probes until all of them are done.
 */
import { setImmediate } from "node:timers";

/** Resolves in a later turn of the event loop. Each turn resolves one caller, the one that has waited longest. */
export type ReadSlot = () => Promise<void>;

export function createReadSlots(): ReadSlot {
  const waiting: (() => void)[] = [];
  function next(): void {
    waiting.shift()?.();
    if (waiting.length > 0) setImmediate(next);
  }
  return () =>
    new Promise((resolve) => {
      waiting.push(resolve);
      if (waiting.length === 1) setImmediate(next);
    });
}
