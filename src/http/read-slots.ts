/**
 * Runs long reads in slices, one slice in each turn of the event loop. An embedded store reads synchronously, so many
 * concurrent readers would otherwise delay decisions and health checks until all of them are done.
 */
import { setImmediate } from "node:timers";

/** Resolves in a later turn of the event loop. Each turn resolves one caller, the one that has waited longest. */
type ReadSlot = () => Promise<void>;

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
