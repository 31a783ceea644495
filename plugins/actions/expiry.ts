/**
 * Turns overdue approvals, and what was approved and not started in its time, into `expired`. Nothing depends on its
 * being in time: the statements of an approval and of a start test the clock themselves. It looks again at least every `LONGEST_NAP`, because a timer does not
 * run while the machine sleeps. Of several processes on one store, one does it.
 */
import type { LeaderLease } from "../../src/core.ts";
import type { Host } from "../../src/plugin.ts";
import { expireOverdue, expireUnstarted } from "./vote.ts";

/** In front of everything. */
const BEGIN = { approved_until: -1, decision_seq: -1 };

const PAGE = 100;
const LONGEST_NAP = 15_000;
/** Where others take submissions too, this process does not hear of every expiry. */
const NAP_AMONG_OTHERS = 5_000;
const AFTER_FAILURE = 2_000;
/** Between two looks that readers caused. */
const LEAST_NAP = 1_000;

export interface Expiry {
  start(): Promise<void>;
  /** Makes sure that the look after `at` is not missed. Milliseconds since the epoch. */
  plan(at: number): void;
  /** Somebody read what is overdue: marks it soon. The reader waits for nothing. */
  notice(): void;
  stop(): Promise<void>;
}

export function createExpiry(host: Host): Expiry {
  let timer: ReturnType<typeof setTimeout> | null = null;
  let wakeAt = Infinity;
  let lookedAt = -Infinity;
  let stopped = false;
  let running: Promise<void> = Promise.resolve();
  let duty: LeaderLease | null = null;
  let passed = BEGIN;

  async function sweep(): Promise<void> {
    while ((await host.storage.overdueActions(host.clock(), 1)).length > 0) {
      if ((await expireOverdue(host, PAGE)) === 0) break;
    }
    await sweepStarts();
  }

  /** What was erased or altered keeps its status and stays in the line: it is passed over once in this process. */
  async function sweepStarts(): Promise<void> {
    for (;;) {
      const [next] = await host.storage.startableActions("approved", passed, 1);
      if (next === undefined || (next.approved_until ?? 0) > host.clock()) return;
      const place = await expireUnstarted(host, passed, PAGE);
      if (place === null) return;
      passed = place;
    }
  }

  function schedule(at: number): void {
    if (stopped || at >= wakeAt) return;
    wakeAt = at;
    if (timer !== null) clearTimeout(timer);
    timer = setTimeout(
      () => {
        running = tick();
      },
      Math.max(0, at - host.clock()),
    );
    timer.unref?.();
  }

  async function tick(): Promise<void> {
    wakeAt = Infinity;
    lookedAt = host.clock();
    try {
      duty ??= host.leaderLease("expiry");
      const nap = host.clock() + (host.storage.exclusive ? LONGEST_NAP : NAP_AMONG_OTHERS);
      if (!(await duty.isLeader())) return schedule(nap);
      await sweep();
      const next = await host.storage.nextExpiry();
      schedule(Math.min(next ?? Infinity, nap));
    } catch (error) {
      if (stopped) return;
      host.log.warn("overdue approvals could not be marked expired; trying again", { error: String(error) });
      schedule(host.clock() + AFTER_FAILURE);
    }
  }

  return {
    plan: schedule,
    notice() {
      // A clock that was set back does not hold it up.
      if (Math.abs(host.clock() - lookedAt) >= LEAST_NAP) schedule(host.clock());
    },
    async start() {
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
