/**
 * Runs long reads in slices, at most one slice in each turn of the event loop. An embedded store reads synchronously.
 * Without slices, many concurrent readers would delay decisions and health checks until all of them are done.
 */
import { setImmediate, setTimeout } from "node:timers";

/** Resolves in a later turn of the event loop. Each turn resolves the caller that has waited longest. */
type ReadSlot = () => Promise<void>;

/** Maximum pause after a slice. Milliseconds. */
const MAX_PAUSE_MS = 50;

/**
 * Creates the function that assigns slots. While several readers wait, a pause follows each slice of at least 1 ms. The
 * pause is as long as the slice, but at most 50 ms. The event loop accepts one connection in each turn. Without pauses,
 * a decision on a new connection would wait for as many slices as there are connections ahead of it.
 */
export function createReadSlots(
  now: () => number = () => performance.now(),
  pause: (resume: () => void, ms: number) => void = setTimeout,
): ReadSlot {
  const waiting: (() => void)[] = [];
  function next(): void {
    const begin = now();
    waiting.shift()?.();
    if (waiting.length === 0) return;
    // This callback runs after the caller's slice.
    setImmediate(() => {
      const spent = Math.min(now() - begin, MAX_PAUSE_MS);
      if (spent < 1) next();
      else pause(next, spent);
    });
  }
  return () =>
    new Promise((resolve) => {
      waiting.push(resolve);
      if (waiting.length === 1) setImmediate(next);
    });
}
