/**
 * Runs long reads in slices, at most one slice in each turn of the event loop. An embedded store reads synchronously.
 * Without slices, many concurrent readers would delay decisions and health checks until all of them are done. Keys take
 * turns, so that the many lists of one key do not delay the list of another.
 */
import { setImmediate, setTimeout } from "node:timers";

/**
 * Resolves in a later turn of the event loop. Each turn resolves one caller: the oldest caller of the key that has
 * waited longest.
 */
type ReadSlot = (key?: string) => Promise<void>;

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
  /** The waiting callers by key. The key whose turn it is comes first. */
  const waiting = new Map<string, (() => void)[]>();
  let isRunning = false;
  function resumeFirst(): void {
    for (const [key, callers] of waiting) {
      const resume = callers.shift();
      waiting.delete(key);
      if (callers.length > 0) waiting.set(key, callers);
      return resume?.();
    }
  }
  function next(): void {
    const begin = now();
    resumeFirst();
    if (waiting.size === 0) {
      isRunning = false;
      return;
    }
    // This callback runs after the caller's slice.
    setImmediate(() => {
      const spent = Math.min(now() - begin, MAX_PAUSE_MS);
      if (spent < 1) next();
      else pause(next, spent);
    });
  }
  return (key = "") =>
    new Promise((resolve) => {
      const callers = waiting.get(key);
      if (callers === undefined) waiting.set(key, [resolve]);
      else callers.push(resolve);
      if (isRunning) return;
      isRunning = true;
      setImmediate(next);
    });
}
