/**
 * Notifies other processes that the ledger has grown. Sends the first announcement immediately, and then at most one
 * every 50 ms.
 */

/** Minimum time between two announcements. Milliseconds. */
const ANNOUNCE_EVERY = 50;

interface Announcer {
  /**
   * Schedules an announcement of this size. If a larger size arrives before the announcement, only the largest is
   * announced.
   */
  moved(size: number): void;
  /** Sends the last announcement. Resolves when it is sent. */
  end(): Promise<void>;
}

/**
 * Creates the announcer. A failed announcement is dropped, because every process also polls the head.
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
