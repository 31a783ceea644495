/**
 * Runs the storage's deferred work in the background, such as computing the sums for analytics, so that it does not
 * delay decisions.
 */
import type { LeaderLease } from "../contract/core-host.ts";
import type { Logger } from "../contract/host.ts";
import type { Ledger } from "../contract/ledger.ts";
import type { Storage } from "../contract/storage.ts";

/** Minimum and maximum number of actions in one transaction. Larger transactions take less time per action. */
const [FEWEST, MOST] = [250, 4000];
/**
 * Target range for the duration of a transaction, in milliseconds. After a shorter transaction, the next one processes
 * twice as many actions; after a longer one, half as many. Transactions are short because the ledger cannot commit a
 * batch meanwhile.
 */
const [SHORT, LONG] = [20, 50];
/** Idle time of the ledger after which the update starts. Milliseconds. */
const DELAY_MS = 1000;
/**
 * Backlog, in entries, at which a run starts immediately. Analytics count actions that are not in the sums row by row.
 */
const MAX_BACKLOG = 20_000;
const PAUSE_MS = 20;
const RETRY_DELAY_MS = 10_000;
/** Interval at which a process that does not hold the lease tries to acquire it. Milliseconds. */
const LEASE_RETRY_MS = 5_000;

export interface SumUpdater {
  start(): void;
  stop(): Promise<void>;
}

export interface SumUpdaterOptions {
  upkeep: NonNullable<Storage["upkeep"]>;
  ledger: Pick<Ledger, "onGrowth">;
  log: Logger;
  /** Lease that limits this job to one process per store. */
  lease: LeaderLease;
}

export function createSumUpdater({ upkeep, ledger, log, lease }: SumUpdaterOptions): SumUpdater {
  /** Announced size of the ledger, and the size up to which all entries are known to be processed. */
  let size = 0;
  let done = 0;
  let timer: ReturnType<typeof setTimeout> | null = null;
  let running: Promise<void> | null = null;
  let stopped = false;
  let unsubscribe: (() => void) | null = null;

  function plan(ms: number): void {
    if (stopped || running !== null) return;
    if (timer !== null) clearTimeout(timer);
    timer = setTimeout(() => {
      timer = null;
      running = fold();
    }, ms);
    timer.unref?.();
  }

  async function fold(): Promise<void> {
    let retryDelayMs: number | null = null;
    try {
      if (!(await lease.isLeader())) retryDelayMs = LEASE_RETRY_MS;
      for (let chunk = FEWEST; !stopped && retryDelayMs === null;) {
        const announced = size;
        const began = performance.now();
        const folded = await upkeep(chunk);
        if (folded < chunk) {
          // All entries that had been announced are processed. Compare sizes of the ledger, because not every entry is
          // an action.
          done = announced;
          break;
        }
        chunk = computeChunkSize(chunk, performance.now() - began);
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      }
    } catch (error) {
      if (!stopped)
        log.warn("the sums for analytics and other deferred data of the store could not be updated; retrying", {
          error: String(error),
        });
      retryDelayMs = RETRY_DELAY_MS;
    }
    running = null;
    if (retryDelayMs !== null || size > done) plan(retryDelayMs ?? DELAY_MS);
  }

  return {
    start() {
      unsubscribe = ledger.onGrowth((now) => {
        size = now;
        // Start at the first announced size, because the first transactions process all earlier entries. Use the
        // smaller size, because an announced size may be too large.
        done = done === 0 ? now : Math.min(done, now);
        if (size - done < MAX_BACKLOG) plan(DELAY_MS);
        else if (timer === null) plan(0);
      });
      plan(DELAY_MS);
    },
    async stop() {
      stopped = true;
      unsubscribe?.();
      if (timer !== null) clearTimeout(timer);
      await running;
      await lease.release().catch(() => undefined);
    },
  };
}

/**
 * Returns the number of actions for the next transaction.
 * @param ms the duration of the transaction that processed `chunk` actions
 */
export function computeChunkSize(chunk: number, ms: number): number {
  if (ms > LONG) return Math.max(FEWEST, chunk / 2);
  return ms < SHORT ? Math.min(MOST, chunk * 2) : chunk;
}
