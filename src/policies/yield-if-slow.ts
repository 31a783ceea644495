/** Work that somebody else sizes, in pieces: between two of them the event loop runs when the last ones took long. */
import { setImmediate } from "node:timers/promises";

const TURN_MS = 20;

/** Called between pieces: null while the turn is short, or what to wait for. */
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
