/**
 * Hands committed entries to subscribers in order and without a gap. What this process did not
 * commit itself, or committed without learning so, is read from the store by sequence.
 */
import type { Logger } from "../contract/host.ts";
import { withoutGap, type EntryRow, type StorageReader } from "../contract/storage.ts";

export type Listener = (entries: readonly EntryRow[]) => void;

export interface Tail {
  subscribe(listener: Listener): () => void;
  committed(entries: readonly EntryRow[]): void;
  /** Another process may have moved the ledger to this size. */
  reached(size: number): void;
  /** How many entries subscribers have been given: the sequence of the next one. */
  delivered(): number;
  /** Resolves when everything announced so far was delivered. */
  settled(): Promise<void>;
}

const PAGE = 256;

export function createTail(reader: StorageReader, size: number, log: Logger): Tail {
  const listeners = new Set<Listener>();
  let delivered = size;
  let gap: Promise<void> | null = null;
  let announced = size;

  function deliver(entries: readonly EntryRow[]): void {
    const first = entries[0];
    if (first === undefined) return;
    delivered = first.seq + entries.length;
    for (const listener of listeners) {
      try {
        listener(entries);
      } catch (error) {
        // A subscriber is never on the way of a decision.
        log.error("a subscriber of the ledger threw", { error: String(error) });
      }
    }
  }

  /** Reads what is missing. At most one reader at a time; what is announced meanwhile is its too. */
  function catchUp(): void {
    if (gap !== null || delivered >= announced) return;
    gap = fill().then((done) => {
      gap = null;
      // Something may have been announced just as it ended.
      if (done) catchUp();
    });
  }

  /** False when it could not read all that was announced. */
  async function fill(): Promise<boolean> {
    try {
      while (delivered < announced) {
        const page = await reader.entries(delivered, Math.min(delivered + PAGE, announced));
        const entries = withoutGap(page, delivered);
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

  return {
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    committed(entries) {
      const first = entries[0];
      if (first === undefined) return;
      announced = Math.max(announced, first.seq + entries.length);
      if (gap === null && first.seq === delivered) deliver(entries);
      else catchUp();
    },
    reached(size) {
      announced = Math.max(announced, size);
      catchUp();
    },
    delivered: () => delivered,
    async settled() {
      while (gap !== null) await gap;
    },
  };
}
