/** Prevents long work, whose size clients control, from blocking the event loop. */
import { setImmediate } from "node:timers/promises";

const TURN_MS = 20;

/**
 * Called between steps of the work. Returns null if the last yield was less than 20 ms ago, else a promise to await.
 */
export type YieldIfSlow = () => Promise<void> | null;

export function createYieldIfSlow(): YieldIfSlow {
  let since = performance.now();
  return () =>
    performance.now() - since < TURN_MS
      ? null
      : setImmediate().then(() => {
          since = performance.now();
        });
}
