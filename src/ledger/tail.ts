/**
 * Hands committed entries to subscribers in order and without a gap. What this process did not commit itself, or
 * committed without learning so, is read from the store by sequence, and only while somebody subscribes: of several
 * processes each would else read what all others write.
 */
import type { Logger } from "../contract/host.ts";
import { assertContiguous, type EntryRow, type StorageReader } from "../contract/storage.ts";

export type Listener = (entries: readonly EntryRow[]) => void;

export interface Tail {
  /** Gives everybody's entries. Where nobody has subscribed yet they begin with a ledger of size `from`. */
  subscribe(listener: Listener, from?: number): () => void;
  /** Gives what this process commits and knows to be committed. */
  onRecorded(listener: Listener): () => void;
  /** Tells what size the ledger may have, whoever wrote. */
  onGrowth(listener: (size: number) => void): () => void;
  committed(entries: readonly EntryRow[]): void;
  /** Another process has moved the ledger to this size. Resolves when its newest entry was looked at, where that is not to be delivered. */
  reached(size: number): Promise<void>;
  /** It may have. */
  moved(size: number): void;
  listening(): boolean;
  /** The size that it has been told of for certain. */
  announced(): number;
  /** How many entries subscribers have been given: the sequence of the next one. */
  delivered(): number;
  /** Resolves when everything announced so far was delivered. */
  settled(): Promise<void>;
}

const PAGE = 256;

/** `newest` is called with the last of the entries that were committed, whether or not somebody listens. */
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

  function tell<T>(all: ReadonlySet<(it: T) => void>, it: T): void {
    for (const listener of all) {
      try {
        listener(it);
      } catch (error) {
        // A subscriber is never on the way of a decision.
        log.error("a subscriber of the ledger threw", { error: String(error) });
      }
    }
  }

  function deliver(entries: readonly EntryRow[]): void {
    const [first, last] = [entries[0], entries.at(-1)];
    if (first === undefined || last === undefined) return;
    delivered = first.seq + entries.length;
    newest(last);
    tell(listeners, entries);
  }

  /** Reads what is missing. At most one reader at a time; what is announced meanwhile is its too. */
  function catchUp(): void {
    if (gap !== null || delivered >= announced || listeners.size === 0) return;
    gap = fill().then((done) => {
      gap = null;
      // Something may have been announced just as it ended.
      if (done) catchUp();
    });
  }

  /** False when it could not read all that was announced. */
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
      // The next commit tries again from the same sequence.
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
      // Nobody waits for what came before.
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
      tell(recorders, entries);
      tell(growth, size);
      if (listeners.size === 0) return;
      if (gap === null && first.seq === delivered) deliver(entries);
      else catchUp();
    },
    async reached(size) {
      const grown = size > announced;
      announced = Math.max(announced, size);
      if (grown) tell(growth, size);
      if (listeners.size > 0) return catchUp();
      if (!grown) return;
      const [last] = await reader.entries(size - 1, size);
      if (last !== undefined) newest(last);
    },
    moved: (size) => tell(growth, size),
    listening: () => listeners.size > 0,
    announced: () => announced,
    delivered: () => delivered,
    async settled() {
      while (gap !== null) await gap;
    },
  };
}
