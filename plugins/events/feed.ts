/**
 * The ledger's newest entries, shared by all streams of this process: one read of the store, or
 * none, for however many subscribers. Older entries come from the store.
 */
import type { CoreHost } from "../../src/core.ts";
import { type EntryRow, assertContiguous } from "../../src/storage/index.ts";

export const PAGE = 256;
const KEPT = 2048;

export interface Feed {
  /** Entries from `seq` on, in order, without a gap; at most PAGE. Empty when there are none yet. */
  page(seq: number): Promise<readonly EntryRow[]>;
  /** Resolves to true when an entry `seq` may be there, to false after `ms` or when `signal` aborts. */
  wait(seq: number, ms: number, signal: AbortSignal): Promise<boolean>;
  /** Whoever reads joins first: entries are kept for as long as anybody has. Returns a function that leaves. */
  join(): () => void;
}

export function createFeed(host: CoreHost): Feed {
  let kept: EntryRow[] = [];
  const waiting = new Set<() => void>();
  const end = (): number => (kept.at(-1)?.seq ?? -1) + 1;

  let readers = 0;
  let unsubscribe = (): void => {};

  function take(entries: readonly EntryRow[]): void {
    const first = entries[0];
    if (first === undefined) return;
    kept = first.seq === end() ? [...kept, ...entries].slice(-KEPT) : [...entries].slice(-KEPT);
    for (const wake of waiting) wake();
  }

  return {
    async page(seq) {
      const first = kept[0]?.seq;
      if (first !== undefined && seq >= first) return kept.slice(seq - first, seq - first + PAGE);
      return assertContiguous(await host.storage.entries(seq, seq + PAGE), seq);
    },
    wait(seq, ms, signal) {
      if (end() > seq) return Promise.resolve(true);
      if (signal.aborted) return Promise.resolve(false);
      return new Promise((resolve) => {
        const done = (there: boolean) => (): void => {
          waiting.delete(wake);
          clearTimeout(timer);
          signal.removeEventListener("abort", aborted);
          resolve(there);
        };
        const wake = done(true);
        const aborted = done(false);
        const timer = setTimeout(aborted, ms);
        waiting.add(wake);
        signal.addEventListener("abort", aborted, { once: true });
      });
    },
    join() {
      if (readers++ === 0) unsubscribe = host.ledger.subscribe(take);
      return () => {
        if (--readers > 0) return;
        unsubscribe();
        // What comes before the next one joins is not among these.
        kept = [];
      };
    },
  };
}
