/**
 * Polls the repository at an interval, in the process that has the lease and in processes that have not loaded a
 * commit. Any process can also poll on request.
 */
import type { LeaderLease } from "../../src/core.ts";
import { RemoteError } from "./repository.ts";

/** Delay before a poll is retried because another poll was running. Milliseconds. */
const BUSY_RETRY_MS = 100;

interface PollerOptions {
  lease: LeaderLease;
  intervalMs: number;
  /** Resolves to the newest commit. Rejects with RemoteError. */
  newest(): Promise<string>;
  /** Returns the last loaded commit, whether it was accepted or not; null if the last load could not read the remote. */
  loaded(): string | null;
  /** Called when there is a new commit, when the remote cannot be read, and when it can be read again. */
  changed(): void;
  /** Called when a poll failed with an error other than RemoteError. */
  failed(error: unknown): void;
}

export class Poller {
  private readonly options: PollerOptions;
  private timer: ReturnType<typeof setTimeout> | null = null;
  private polling: Promise<void> | null = null;
  private hasStopped = false;
  /**
   * Whether the last poll failed. The next poll then always calls `changed`, which reports the failure or the recovery.
   */
  private hasFailed = false;

  constructor(options: PollerOptions) {
    this.options = options;
  }

  start(): void {
    this.schedule(this.options.intervalMs);
  }

  /** Polls now, even if this process is not the leader. */
  pollNow(): void {
    this.schedule(0, true);
  }

  /** Waits for the running poll, and releases the lease. */
  async stop(): Promise<void> {
    this.hasStopped = true;
    if (this.timer !== null) clearTimeout(this.timer);
    await this.polling;
    await this.options.lease.release().catch(() => undefined);
  }

  /**
   * Schedules the next poll, and the polls after it.
   * @param isUrgent whether to poll even if this process is not the leader and has loaded a commit
   */
  private schedule(ms: number, isUrgent = false): void {
    if (this.hasStopped) return;
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.timer = null;
      if (this.polling !== null) return this.schedule(BUSY_RETRY_MS, isUrgent);
      this.polling = this.poll(isUrgent)
        .catch((error: unknown) => this.options.failed(error))
        .finally(() => {
          this.polling = null;
          if (this.timer === null) this.schedule(this.options.intervalMs);
        });
    }, ms);
    this.timer.unref?.();
  }

  private async poll(isUrgent: boolean): Promise<void> {
    const { lease, newest, loaded, changed } = this.options;
    if (!isUrgent && loaded() !== null && !(await lease.isLeader())) return;
    let commit: string | null = null;
    try {
      commit = await newest();
    } catch (error) {
      if (!(error instanceof RemoteError)) throw error;
    }
    if (this.hasStopped || (commit === loaded() && commit !== null && !this.hasFailed)) return;
    this.hasFailed = commit === null;
    changed();
  }
}
