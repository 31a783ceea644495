/** Notifies other processes that the ledger has grown: immediately after a pause, otherwise at most every 50 ms. */

/** Shortest time between two announcements. Milliseconds. */
const ANNOUNCE_EVERY = 50;

interface Announcer {
  /** Announces this size soon, unless a larger size replaces it. */
  moved(size: number): void;
  /** Sends the last announcement, and waits for the send. */
  end(): Promise<void>;
}

/**
 * Announcements are hints: a failed one is dropped, because every process also polls the head.
 * @param send sends the size of the ledger
 */
export function createAnnouncer(send: (size: number) => Promise<void>): Announcer {
  let newest: number | null = null;
  let timer: ReturnType<typeof setTimeout> | null = null;
  let sentAt = -Infinity;
  let sending: Promise<void> = Promise.resolve();

  function flush(): void {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    const size = newest;
    newest = null;
    if (size === null) return;
    sentAt = performance.now();
    sending = sending.then(() => send(size)).catch(() => undefined);
  }

  return {
    moved(size) {
      newest = Math.max(newest ?? 0, size);
      timer ??= setTimeout(flush, Math.max(0, ANNOUNCE_EVERY - (performance.now() - sentAt)));
    },
    async end() {
      flush();
      await sending;
    },
  };
}
