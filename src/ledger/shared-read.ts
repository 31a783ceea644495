/** Combines concurrent reads of the same value into one. */

/**
 * Returns a function that combines concurrent reads. A call during a read does not get the result of this read, which
 * could be older than the call. All calls during a read share the next read.
 */
export function createSharedRead<T>(read: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | null = null;
  let next: Promise<T> | null = null;

  function begin(): Promise<T> {
    const started = read().finally(() => {
      if (running === started) running = null;
    });
    running = started;
    return started;
  }

  return () => {
    if (next !== null) return next;
    if (running === null) return begin();
    next = running
      .catch(() => undefined)
      .then(() => {
        next = null;
        return begin();
      });
    return next;
  };
}
