/** Reads the committed head for all components of this process. */
import type { RowSeals } from "../contract/row-seals.ts";
import type { LedgerHead, Storage, StoredHead } from "../contract/storage.ts";
import { createContinuity, type Continuity } from "./commit/continuity.ts";
import { createSharedRead } from "./shared-read.ts";

export class HeadReader {
  /** Verifies that each head extends the heads that were read earlier. */
  readonly continuity: Continuity;
  /**
   * The last head that this process committed, or the head at startup before the first commit. Null if the content of
   * the store is uncertain.
   */
  lastCommitted: LedgerHead | null = null;
  private readonly isExclusive: boolean;
  private readonly epochListeners = new Set<() => void>();
  private readonly readStored: () => Promise<StoredHead>;

  private constructor(storage: Storage, start: StoredHead, seals: RowSeals) {
    this.continuity = createContinuity(start, storage, seals, () =>
      this.epochListeners.forEach((listener) => listener()),
    );
    this.isExclusive = storage.exclusive;
    this.readStored = createSharedRead(() => this.continuity.observe(() => storage.head()));
  }

  /** Reads the head of an open store. Does not verify this head, but each later one, and the head on each connection. */
  static async open(storage: Storage, seals: RowSeals): Promise<HeadReader> {
    const heads = new HeadReader(storage, await storage.head(), seals);
    storage.onConnection?.((reader) => heads.continuity.check(reader));
    return heads;
  }

  /**
   * Calls `listener` in the same turn of the event loop in which this process first sees a head with a new epoch. For
   * the epoch of its own commit, that is before the caller of the commit continues. The listener must not throw.
   */
  onEpoch(listener: () => void): void {
    this.epochListeners.add(listener);
  }

  /** Returns the committed head. Does not read the store if no other process can write to it. */
  async read(): Promise<StoredHead> {
    return this.isExclusive && this.lastCommitted !== null ? this.lastCommitted : this.readStored();
  }

  /** Reads the head from the store. */
  refresh(): Promise<StoredHead> {
    return this.readStored();
  }
}
