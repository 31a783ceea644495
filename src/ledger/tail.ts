/**
 * Delivers committed entries to subscribers, in order and without gaps. Entries of other processes, and own entries whose
 * commit is uncertain, are read from the store by sequence number, but only while there are subscribers, so that processes do
 * not read each other's entries for nothing.
 */
import type { Logger } from "../contract/host.ts";
import { assertContiguous, type EntryRow, type StorageReader } from "../contract/storage.ts";

export type Listener = (entries: readonly EntryRow[]) => void;

export interface Tail {
  /**
   * Delivers the entries of all processes that are announced from now on. The first subscriber can skip the entries below
   * sequence number `from`. Returns a function that ends the subscription.
   */
  subscribe(listener: Listener, from?: number): () => void;
  /** Delivers entries that this process committed, unless the outcome of the commit was uncertain. */
  onRecorded(listener: Listener): () => void;
  /** Calls the listener with the possible size of the ledger whenever any process commits. */
  onGrowth(listener: (size: number) => void): () => void;
  committed(entries: readonly EntryRow[]): void;
  /**
   * Reports that the ledger has this size because another process committed. With subscribers, starts to read the new entries
   * and resolves at once. Without subscribers, reads only the newest entry and then resolves.
   */
  reached(size: number): Promise<void>;
  /** Reports that the ledger may have this size. */
  moved(size: number): void;
  listening(): boolean;
  /** Returns the largest size of the ledger that was reported by `committed` or `reached`. */
  announced(): number;
  /** Returns the number of delivered entries, which is the next sequence number. */
  delivered(): number;
  /** Resolves when everything announced so far is delivered. */
  settled(): Promise<void>;
}

const PAGE = 256;

/**
 * Creates the tail of a ledger.
 * @param newest called with the last committed entry, even without subscribers
 */
export function createTail(
  reader: Pick<StorageReader, "entries">,
  size: number,
  log: Logger,
  newest: (entry: EntryRow) => void = () => {},
): Tail {
  const listeners = new Set<Listener>();
  const recorders = new Set<Listener>();
  const growth = new Set<(size: number) => void>();
  let delivered = size;
  let gap: Promise<void> | null = null;
  let announced = size;

  function notify<T>(subscribers: ReadonlySet<(value: T) => void>, value: T): void {
    for (const listener of subscribers) {
      try {
        listener(value);
      } catch (error) {
        // An error of a subscriber must not affect decisions.
        log.error("a subscriber of the ledger threw", { error: String(error) });
      }
    }
  }

  function deliver(entries: readonly EntryRow[]): void {
    const [first, last] = [entries[0], entries.at(-1)];
    if (first === undefined || last === undefined) return;
    delivered = first.seq + entries.length;
    newest(last);
    notify(listeners, entries);
  }

  /** Reads the missing entries. One read runs at a time, and includes what is announced meanwhile. */
  function catchUp(): void {
    if (gap !== null || delivered >= announced || listeners.size === 0) return;
    gap = fill().then((done) => {
      gap = null;
      // Check again, because something may have been announced just as the read ended.
      if (done) catchUp();
    });
  }

  /** Reads up to the announced size. Resolves to false if a read failed. */
  async function fill(): Promise<boolean> {
    try {
      while (delivered < announced && listeners.size > 0) {
        const page = await reader.entries(delivered, Math.min(delivered + PAGE, announced));
        const entries = assertContiguous(page, delivered);
        if (entries.length === 0) return false;
        deliver(entries);
      }
      return true;
    } catch (error) {
      // The next commit reads again from the same sequence number.
      log.warn("the ledger's tail could not be read; subscribers wait", { error: String(error) });
      return false;
    }
  }

  function add<T>(set: Set<T>, listener: T): () => void {
    set.add(listener);
    return () => void set.delete(listener);
  }

  return {
    subscribe(listener, from = announced) {
      // Without subscribers, no one needs the entries that were announced earlier.
      if (listeners.size === 0 && gap === null) delivered = Math.max(announced, from);
      return add(listeners, listener);
    },
    onRecorded: (listener) => add(recorders, listener),
    onGrowth: (listener) => add(growth, listener),
    committed(entries) {
      const first = entries[0];
      if (first === undefined) return;
      const size = first.seq + entries.length;
      announced = Math.max(announced, size);
      notify(recorders, entries);
      notify(growth, size);
      if (listeners.size === 0) return;
      if (gap === null && first.seq === delivered) deliver(entries);
      else catchUp();
    },
    async reached(size) {
      const grown = size > announced;
      announced = Math.max(announced, size);
      if (grown) notify(growth, size);
      if (listeners.size > 0) return catchUp();
      if (!grown) return;
      const [last] = await reader.entries(size - 1, size);
      if (last !== undefined) newest(last);
    },
    moved: (size) => notify(growth, size),
    listening: () => listeners.size > 0,
    announced: () => announced,
    delivered: () => delivered,
    async settled() {
      while (gap !== null) await gap;
    },
  };
}
