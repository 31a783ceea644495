/**
 * Follows the commits of other processes. The store announces commits if it can, but the head is also polled, because
 * an announcement can be lost. Polling also finds commits of this process whose outcome is unknown.
 */
import type { Logger } from "../contract/host.ts";
import type { Storage } from "../contract/storage.ts";
import type { HistoryAgreement } from "./commit/history-agreement.ts";
import type { HeadReader } from "./head-reader.ts";
import type { LedgerTail } from "./tail.ts";

/** Interval at which the head is polled, in case the announcement of a commit was lost. Milliseconds. */
const CATCH_UP_INTERVAL_MS = 500;
/** Like CATCH_UP_INTERVAL_MS, but for stores that do not announce commits. Milliseconds. */
const POLL_INTERVAL_MS = 250;

interface CommitFollowerOptions {
  storage: Pick<Storage, "exclusive" | "watch">;
  heads: HeadReader;
  tail: LedgerTail;
  /** Lets processes compare their histories; null if no other process can use the store. */
  historyAgreement: HistoryAgreement | null;
  /** Signs heads that other processes committed, and keeps the checkpoints outside the store. */
  keepSeen(): Promise<void>;
  log: Logger;
}

export class CommitFollower {
  private readonly options: CommitFollowerOptions;
  private interval: ReturnType<typeof setInterval> | null = null;
  private unwatch: (() => Promise<void> | void) | null = null;
  private reading: Promise<void> | null = null;
  private mustReadAgain = false;
  private polling: Promise<void> | null = null;
  private keeping: Promise<void> | null = null;

  constructor(options: CommitFollowerOptions) {
    this.options = options;
  }

  async start(): Promise<void> {
    const { storage, heads } = this.options;
    if (storage.watch !== undefined) {
      this.unwatch = await storage.watch((size) => {
        this.announced(size);
        // The store calls without a size after each new connection, which may lead to a different database.
        if (size === undefined) this.poll();
      });
    }
    this.interval = setInterval(
      () => {
        if (!storage.exclusive || heads.lastCommitted === null) this.poll();
      },
      storage.watch === undefined && !storage.exclusive ? POLL_INTERVAL_MS : CATCH_UP_INTERVAL_MS,
    );
    this.interval.unref?.();
    this.poll();
  }

  async stop(): Promise<void> {
    if (this.interval !== null) clearInterval(this.interval);
    await this.unwatch?.();
    await this.reading;
    await this.polling;
    await this.keeping;
  }

  /** Reads the head and reports it to the tail. If a read is in progress, reads again after it. */
  catchUp(): void {
    this.mustReadAgain = true;
    this.reading ??= this.readHeads();
  }

  private async readHeads(): Promise<void> {
    const { heads, tail, log } = this.options;
    while (this.mustReadAgain) {
      this.mustReadAgain = false;
      try {
        await tail.reached((await heads.refresh()).size);
      } catch (error) {
        log.warn("the ledger's head could not be read; subscribers wait", { error: String(error) });
      }
    }
    this.reading = null;
  }

  private announced(size?: number): void {
    const { tail } = this.options;
    // This is usually the head of this process's own commit, which subscribers have already received.
    if (size !== undefined && size <= tail.announced()) return;
    if (size === undefined || tail.listening()) this.catchUp();
    else tail.moved(size);
  }

  /** Checks whether the database was replaced, and reads the commits of other processes. */
  private poll(): void {
    const { historyAgreement, tail, log } = this.options;
    if (historyAgreement === null) return this.catchUp();
    this.polling ??= historyAgreement
      .poll()
      .then(({ size }) => {
        if (size > tail.announced()) this.catchUp();
        // Do not await these reads, because they hang if the server hangs. The next poll finds the server that replaced
        // it.
        this.keeping ??= this.keepSeen().finally(() => (this.keeping = null));
      })
      .catch((error: unknown) => log.debug("the database could not be read", { error: String(error) }))
      .finally(() => (this.polling = null));
  }

  private async keepSeen(): Promise<void> {
    try {
      await this.reading;
      await this.options.keepSeen();
    } catch (error) {
      this.options.log.debug("the newest checkpoint could not be stored", { error: String(error) });
    }
  }
}
