/** One read for all who wait for it. */

/**
 * Who asks while a read is under way shares the next one with all who ask by then: what it answers was read after each
 * of them had asked.
 */
export function sharedRead<T>(read: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | null = null;
  let next: Promise<T> | null = null;

  function begin(): Promise<T> {
    const mine = read().finally(() => {
      if (running === mine) running = null;
    });
    running = mine;
    return mine;
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
