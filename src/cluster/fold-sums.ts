/** Does what the store puts off (its sums, kept near the present), beside the decisions and never in their way. */
import type { LeaderLease } from "../contract/core-host.ts";
import type { Logger } from "../contract/host.ts";
import type { Ledger } from "../contract/ledger.ts";
import type { Storage } from "../contract/storage.ts";

/** Fewest and most actions folded in one transaction. What they share is written once, so that more cost little more. */
const [FEWEST, MOST] = [250, 4000];
/** No batch commits while a transaction runs: a shorter one may hold more, and one that took longer holds less. Milliseconds. */
const [SHORT, LONG] = [20, 50];
/** After this long without an entry nobody is waiting. Milliseconds. */
const QUIET = 1000;
/** A larger backlog is folded without waiting for quiet: until it is folded it is counted row by row. */
const BEHIND = 20_000;
const BREATH = 20;
const AFTER_FAILURE = 10_000;
/** How soon a process looks again whether the folding has fallen to it. */
const TURN = 5_000;

export interface SumFolder {
  start(): void;
  stop(): Promise<void>;
}

export interface SumFolderOptions {
  upkeep: NonNullable<Storage["upkeep"]>;
  ledger: Pick<Ledger, "onGrowth">;
  log: Logger;
  /** The lease of the one process that folds, of all that share the store. */
  lease: LeaderLease;
}

export function createSumFolder({ upkeep, ledger, log, lease: duty }: SumFolderOptions): SumFolder {
  /** The size that the ledger is said to have, and the one up to which all is folded, as far as this process knows. */
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
    let again: number | null = null;
    try {
      if (!(await duty.isLeader())) again = TURN;
      for (let chunk = FEWEST; !stopped && again === null;) {
        const announced = size;
        const began = performance.now();
        const folded = await upkeep(chunk);
        if (folded < chunk) {
          // Everything announced before is folded. Counting down would never reach it: not every entry is an action.
          done = announced;
          break;
        }
        chunk = nextChunkSize(chunk, performance.now() - began);
        await new Promise((resolve) => setTimeout(resolve, BREATH));
      }
    } catch (error) {
      if (!stopped)
        log.warn(
          "what the store puts off, such as the sums for analytics, could not be brought up to date; trying again",
          { error: String(error) },
        );
      again = AFTER_FAILURE;
    }
    running = null;
    if (again !== null || size > done) plan(again ?? QUIET);
  }

  return {
    start() {
      unsubscribe = ledger.onGrowth((now) => {
        size = now;
        // Before the first word nothing is known; the first look folds what there is. A word may have said too much.
        done = done === 0 ? now : Math.min(done, now);
        if (size - done < BEHIND) plan(QUIET);
        else if (timer === null) plan(0);
      });
      plan(QUIET);
    },
    async stop() {
      stopped = true;
      unsubscribe?.();
      if (timer !== null) clearTimeout(timer);
      await running;
      await duty.release().catch(() => undefined);
    },
  };
}

/** @param ms that a transaction of `chunk` actions took */
export function nextChunkSize(chunk: number, ms: number): number {
  if (ms > LONG) return Math.max(FEWEST, chunk / 2);
  return ms < SHORT ? Math.min(MOST, chunk * 2) : chunk;
}
