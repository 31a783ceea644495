/** Does what the store puts off (its sums, kept near the present), beside the decisions and never in their way. */
import type { Duty, Ledger, Logger } from "../contract/host.ts";
import type { Storage } from "../contract/storage.ts";

/** Actions folded in one transaction: no batch commits while it runs. */
const CHUNK = 1000;
/** After this long without an entry nobody is waiting. Milliseconds. */
const QUIET = 1000;
/** A larger backlog is folded without waiting for quiet: until it is folded it is counted row by row. */
const BEHIND = 20_000;
const BREATH = 20;
const AFTER_FAILURE = 10_000;
/** How soon a process looks again whether the folding has fallen to it. */
const TURN = 5_000;

export interface Folding {
  start(): void;
  stop(): Promise<void>;
}

export interface FoldingOptions {
  upkeep: NonNullable<Storage["upkeep"]>;
  ledger: Pick<Ledger, "subscribe">;
  log: Logger;
  /** Of the processes that share the store, one folds. */
  duty: Duty;
}

export function createFolding({ upkeep, ledger, log, duty }: FoldingOptions): Folding {
  let waiting = 0;
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
      if (!(await duty.mine())) again = TURN;
      while (!stopped && again === null) {
        const announced = waiting;
        const folded = await upkeep(CHUNK);
        if (folded < CHUNK) {
          // Everything announced before is folded. Counting down would never reach zero: not every entry is an action.
          waiting -= announced;
          break;
        }
        waiting = Math.max(0, waiting - folded);
        await new Promise((resolve) => setTimeout(resolve, BREATH));
      }
    } catch (error) {
      if (!stopped)
        log.warn("the sums for analytics could not be brought up to date; trying again", { error: String(error) });
      again = AFTER_FAILURE;
    }
    running = null;
    if (again !== null || waiting > 0) plan(again ?? QUIET);
  }

  return {
    start() {
      unsubscribe = ledger.subscribe((entries) => {
        waiting += entries.length;
        if (waiting < BEHIND) plan(QUIET);
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
