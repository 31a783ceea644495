/**
 * Delivers committed entries to subscribers, in order and without gaps. Reads entries of other processes, and entries
 * of this process whose commit is uncertain, from the store by sequence number. Without subscribers, it reads only the
 * newest entry.
 */
import type { Logger } from "../contract/host.ts";
import type { RecordedEntry } from "../contract/ledger.ts";
import { assertContiguous, type EntryRow, type StorageReader } from "../contract/storage.ts";

export type EntryListener = (entries: readonly EntryRow[]) => void;
export type RecordListener = (entries: readonly RecordedEntry[]) => void;

const PAGE_SIZE = 256;

export class LedgerTail {
  private readonly reader: Pick<StorageReader, "entries">;
  private readonly log: Logger;
  private readonly newest: (entry: EntryRow) => void;
  private readonly listeners = new Set<EntryListener>();
  private readonly recorders = new Set<RecordListener>();
  private readonly growth = new Set<(size: number) => void>();
  private deliveredSize: number;
  private gap: Promise<void> | null = null;
  private announcedSize: number;

  /** @param newest a function that is called with the newest committed entry, even if there are no subscribers */
  constructor(
    reader: Pick<StorageReader, "entries">,
    size: number,
    log: Logger,
    newest: (entry: EntryRow) => void = () => {},
  ) {
    this.reader = reader;
    this.log = log;
    this.newest = newest;
    this.deliveredSize = size;
    this.announcedSize = size;
  }

  /**
   * Delivers the entries of all processes, starting with the first entry that is announced after the call. The first
   * subscriber starts at `from` if that sequence number is later. Returns a function that ends the subscription.
   */
  subscribe(listener: EntryListener, from: number = this.announcedSize): () => void {
    // Without subscribers, no one needs the entries that were announced earlier.
    if (this.listeners.size === 0 && this.gap === null) this.deliveredSize = Math.max(this.announcedSize, from);
    return this.add(this.listeners, listener);
  }

  /** Delivers entries that this process committed, unless the outcome of the commit was uncertain. */
  onRecorded(listener: RecordListener): () => void {
    return this.add(this.recorders, listener);
  }

  /** Calls the listener with the possible size of the ledger when any process commits. */
  onGrowth(listener: (size: number) => void): () => void {
    return this.add(this.growth, listener);
  }

  /** @param recorded the same entries before they were encoded */
  committed(entries: readonly EntryRow[], recorded: readonly RecordedEntry[]): void {
    const first = entries[0];
    if (first === undefined) return;
    const size = first.seq + entries.length;
    this.announcedSize = Math.max(this.announcedSize, size);
    this.notify(this.recorders, recorded);
    this.notify(this.growth, size);
    if (this.listeners.size === 0) return;
    if (this.gap === null && first.seq === this.deliveredSize) this.deliver(entries);
    else this.catchUp();
  }

  /**
   * Reports that the ledger has this size because another process committed. If there are subscribers, starts to read
   * the new entries and resolves immediately. If there are none, reads only the newest entry before it resolves.
   */
  async reached(size: number): Promise<void> {
    const grown = size > this.announcedSize;
    this.announcedSize = Math.max(this.announcedSize, size);
    if (grown) this.notify(this.growth, size);
    if (this.listeners.size > 0) return this.catchUp();
    if (!grown) return;
    const [last] = await this.reader.entries(size - 1, size);
    if (last !== undefined) this.newest(last);
  }

  /** Reports that the ledger might have this size. */
  moved(size: number): void {
    this.notify(this.growth, size);
  }

  listening(): boolean {
    return this.listeners.size > 0;
  }

  /** Returns the largest size of the ledger that was reported by `committed` or `reached`. */
  announced(): number {
    return this.announcedSize;
  }

  /** Returns the number of delivered entries, which is the next sequence number. */
  delivered(): number {
    return this.deliveredSize;
  }

  /** Resolves when no read of missing entries is running. */
  async settled(): Promise<void> {
    while (this.gap !== null) await this.gap;
  }

  private notify<T>(subscribers: ReadonlySet<(value: T) => void>, value: T): void {
    for (const listener of subscribers) {
      try {
        listener(value);
      } catch (error) {
        // An error of a subscriber must not affect decisions.
        this.log.error("a subscriber of the ledger threw", { error: String(error) });
      }
    }
  }

  private deliver(entries: readonly EntryRow[]): void {
    const [first, last] = [entries[0], entries.at(-1)];
    if (first === undefined || last === undefined) return;
    this.deliveredSize = first.seq + entries.length;
    this.newest(last);
    this.notify(this.listeners, entries);
  }

  /** Reads the missing entries. One read runs at a time, and includes entries that are announced during the read. */
  private catchUp(): void {
    if (this.gap !== null || this.deliveredSize >= this.announcedSize || this.listeners.size === 0) return;
    this.gap = this.fill().then((done) => {
      this.gap = null;
      // Check again, because an announcement may have arrived just when the read ended.
      if (done) this.catchUp();
    });
  }

  /** Reads up to the announced size. Resolves to false if a read failed. */
  private async fill(): Promise<boolean> {
    try {
      while (this.deliveredSize < this.announcedSize && this.listeners.size > 0) {
        const page = await this.reader.entries(
          this.deliveredSize,
          Math.min(this.deliveredSize + PAGE_SIZE, this.announcedSize),
        );
        const entries = assertContiguous(page, this.deliveredSize);
        if (entries.length === 0) return false;
        this.deliver(entries);
      }
      return true;
    } catch (error) {
      // The next commit reads again from the same sequence number.
      this.log.warn("the ledger's tail could not be read; subscribers wait", { error: String(error) });
      return false;
    }
  }

  private add<T>(set: Set<T>, listener: T): () => void {
    set.add(listener);
    return () => void set.delete(listener);
  }
}
