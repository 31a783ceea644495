/**
 * Background task that marks actions as `expired`: pending actions after their deadline, and approved actions that were
 * not started in time. Correctness does not depend on its timing, because votes and starts check the clock themselves.
 * It runs at least every `MAX_INTERVAL`, because timers do not run while the machine sleeps. One process per store runs
 * it.
 */
import type { CoreHost, LeaderLease } from "../../src/core.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import { expireOverdue, expireUnstarted } from "./cast-vote.ts";

/** The position before the first action. */
const FIRST_POSITION = { approved_until: -1, decision_seq: -1 };

const PAGE_SIZE = 100;
const MAX_INTERVAL = 15_000;
/** Sweep interval on a shared store, where other processes accept submissions without notifying this process. */
const SHARED_STORE_INTERVAL = 5_000;
const RETRY_DELAY = 2_000;
/** Minimum time between two sweeps that are triggered by reads. */
const MIN_INTERVAL = 1_000;

interface ExpiryTask {
  /** Schedules a sweep at the time `at`. Milliseconds since the epoch. */
  schedule(at: number): void;
  notice(): void;
}

/** The tasks of the running services. */
const tasks = new WeakMap<CoreHost["ledger"], ExpiryTask>();

/** Schedules a sweep for the deadline of a pending action. */
export function scheduleExpiry({ ledger }: CoreHost, { status, expires_at }: ActionRow): void {
  if (status === "pending_approval" && expires_at !== null) tasks.get(ledger)?.schedule(expires_at);
}

/** Schedules a sweep soon, without delaying the caller. Called when a read finds an overdue action. */
export function noticeOverdue({ ledger }: CoreHost): void {
  tasks.get(ledger)?.notice();
}

export function createExpiryTask(host: CoreHost): { start(): Promise<void>; stop(): Promise<void> } {
  let timer: ReturnType<typeof setTimeout> | null = null;
  let wakeAt = Infinity;
  let lastSweepAt = -Infinity;
  let stopped = false;
  let running: Promise<void> = Promise.resolve();
  let duty: LeaderLease | null = null;
  let position = FIRST_POSITION;

  async function sweep(): Promise<void> {
    while ((await host.storage.overdueActions(host.clock(), 1)).length > 0) {
      if ((await expireOverdue(host, PAGE_SIZE)) === 0) break;
    }
    await sweepStarts();
  }

  /**
   * Expires approved actions that were not started in time. Remembers its position, because erased and altered actions
   * keep their status, and later sweeps would read them again.
   */
  async function sweepStarts(): Promise<void> {
    for (;;) {
      const [next] = await host.storage.approvedActions(position, 1);
      if (next === undefined || (next.approved_until ?? 0) > host.clock()) return;
      const nextPosition = await expireUnstarted(host, position, PAGE_SIZE);
      if (nextPosition === null) return;
      position = nextPosition;
    }
  }

  function schedule(at: number): void {
    const delay = Math.max(0, at - host.clock());
    // Timers use the monotonic clock, so compare with that: setting the wall clock ahead does not move a timer.
    const due = performance.now() + delay;
    if (stopped || due >= wakeAt) return;
    wakeAt = due;
    if (timer !== null) clearTimeout(timer);
    timer = setTimeout(() => {
      running = tick();
    }, delay);
    timer.unref?.();
  }

  async function tick(): Promise<void> {
    wakeAt = Infinity;
    lastSweepAt = host.clock();
    try {
      duty ??= host.leaderLease("expiry");
      const latest = host.clock() + (host.storage.exclusive ? MAX_INTERVAL : SHARED_STORE_INTERVAL);
      if (!(await duty.isLeader())) return schedule(latest);
      await sweep();
      const next = await host.storage.nextExpiry();
      schedule(Math.min(next ?? Infinity, latest));
    } catch (error) {
      if (stopped) return;
      host.log.warn("could not mark overdue actions as expired; retrying", { error: String(error) });
      schedule(host.clock() + RETRY_DELAY);
    }
  }

  function notice(): void {
    // Use the absolute difference, so that a clock that was set back does not block sweeps.
    if (Math.abs(host.clock() - lastSweepAt) >= MIN_INTERVAL) schedule(host.clock());
  }

  return {
    async start() {
      tasks.set(host.ledger, { schedule, notice });
      running = tick();
      await running;
    },
    async stop() {
      stopped = true;
      if (timer !== null) clearTimeout(timer);
      await running;
      await duty?.release().catch(() => undefined);
    },
  };
}
