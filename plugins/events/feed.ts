/**
 * Caches the newest ledger entries for all streams of this process, so that the store is not read once for each stream.
 * Older entries are read from the store.
 */
import type { CoreHost } from "../../src/core.ts";
import { type EntryRow, assertContiguous } from "../../src/storage/index.ts";

export const ENTRIES_PER_PAGE = 256;
/** Maximum number of cached entries. */
const MAX_CACHED = 2048;

export interface Feed {
  /**
   * Resolves to at most `ENTRIES_PER_PAGE` entries from `seq` on, in order and without gaps. Empty if there are no such
   * entries yet.
   */
  page(seq: number): Promise<readonly EntryRow[]>;
  /**
   * Resolves to true if the cache contains the entry `seq`, or when entries are added to the cache. Resolves to false
   * after `ms` milliseconds or when `signal` aborts.
   */
  wait(seq: number, ms: number, signal: AbortSignal): Promise<boolean>;
  /**
   * Subscribes. Call this before reading, because entries are cached only while there are subscribers. Returns a
   * function that unsubscribes.
   */
  join(): () => void;
}

export function createFeed(host: CoreHost): Feed {
  let recent: EntryRow[] = [];
  const waiting = new Set<() => void>();
  const end = (): number => (recent.at(-1)?.seq ?? -1) + 1;

  let readers = 0;
  let unsubscribe = (): void => {};

  function append(entries: readonly EntryRow[]): void {
    const first = entries[0];
    if (first === undefined) return;
    recent = first.seq === end() ? [...recent, ...entries].slice(-MAX_CACHED) : [...entries].slice(-MAX_CACHED);
    for (const wake of waiting) wake();
  }

  return {
    async page(seq) {
      const first = recent[0]?.seq;
      if (first !== undefined && seq >= first) return recent.slice(seq - first, seq - first + ENTRIES_PER_PAGE);
      // Read no entry before this process has seen its head, which may end the credential of a stream.
      const { size } = host.ledger.seenHead();
      if (seq >= size) return [];
      return assertContiguous(await host.storage.entries(seq, Math.min(seq + ENTRIES_PER_PAGE, size)), seq);
    },
    wait(seq, ms, signal) {
      if (end() > seq) return Promise.resolve(true);
      if (signal.aborted) return Promise.resolve(false);
      return new Promise((resolve) => {
        const done = (hasEntry: boolean) => (): void => {
          waiting.delete(wake);
          clearTimeout(timer);
          signal.removeEventListener("abort", aborted);
          resolve(hasEntry);
        };
        const wake = done(true);
        const aborted = done(false);
        const timer = setTimeout(aborted, ms);
        waiting.add(wake);
        signal.addEventListener("abort", aborted, { once: true });
      });
    },
    join() {
      if (readers++ === 0) unsubscribe = host.ledger.subscribe(append);
      return () => {
        if (--readers > 0) return;
        unsubscribe();
        // Without a subscriber, later entries are not added. Clear the cache to avoid gaps.
        recent = [];
      };
    },
  };
}
