/**
 * Erases what was asked so long ago that the configuration says to keep it no longer. Goes through the ledger from its
 * beginning, once: what it has passed it keeps in a document. Of several processes on one store, one does it; done
 * twice, it erases nothing twice.
 */
import { setImmediate } from "node:timers/promises";
import { type LeaderLease, findErasureBlocker, createRepeatingTask, USE_RETENTION_MS } from "../../src/core.ts";
import type { Host } from "../../src/plugin.ts";
import { eraseActions } from "./erase-actions.ts";

const DAY = 86_400_000;
/** Entries that are looked at together: the requests of so many actions are held in memory. */
const STRETCH = 64;
const BETWEEN = 600_000;
const AFTER_FAILURE = 30_000;
const PLACE = "retention";
/** Removed in one transaction. */
const USES = 500;

export interface Retention {
  start(): void;
  /** Erases what is due now. Answers how many actions. Rejects when the store cannot. */
  sweep(): Promise<number>;
  stop(): Promise<void>;
}

export function createRetention(host: Host): Retention {
  const days = host.config.retention.erase_after_days;
  let stopped = false;
  let duty: LeaderLease | null = null;

  async function sweep(): Promise<number> {
    if (days === null || !(await mine())) return 0;
    const due = host.clock() - days * DAY;
    const because = {
      cause: "retention",
      reason: `the configuration keeps parameters for ${days} days`,
      by: null,
    } as const;
    const place = await host.documents.get(PLACE);
    const passed = (place?.value as { passed: number } | undefined)?.passed ?? 0;
    const { size } = await host.ledger.head();
    let [at, erased, altered] = [passed, 0, 0];
    /** The first that is not due yet, or not over: the next sweep begins with it. */
    let stays = Infinity;
    while (at < size && !stopped && (await mine())) {
      const before = Math.min(size, at + STRETCH);
      // Not with their entries: bytes that are damaged must not hold up what is behind them.
      const newest = await host.storage.actions({ visibility: { all: true }, before_seq: before, limit: STRETCH });
      const rows = newest.filter(({ decision_seq }) => decision_seq >= at);
      const kept = rows.filter(({ request }) => request !== "");
      const over = kept.filter(({ created_at }) => created_at < due).map(({ id }) => id);
      if (over.length > 0) {
        const done = await host.ledger.transact((tx) => eraseActions(host, tx, over, because));
        erased += done.erased;
        altered += done.altered;
      }
      for (const { decision_seq, id, created_at } of kept) {
        const waits = created_at >= due || (await isOpen(id));
        if (waits) stays = Math.min(stays, decision_seq);
      }
      if (rows.some(({ created_at }) => created_at >= due)) break;
      at = before;
      await setImmediate();
    }
    const reached = Math.min(at, stays);
    if (reached > passed) await remember(reached, place?.version ?? null);
    if (erased > 0) host.log.info("parameters were erased: their time is over", { actions: erased, days });
    if (altered > 0)
      host.log.error("actions whose time is over are not what the ledger says, and stay; run assent audit", {
        actions: altered,
      });
    while (!stopped && (await prunedUses()) === USES) await setImmediate();
    return erased;
  }

  /** What was altered does not hold up those behind it. */
  async function isOpen(id: string): Promise<boolean> {
    const row = await host.storage.action(id);
    return row !== null && row.erased_at === null && findErasureBlocker(row, host.clock()) !== null;
  }

  async function remember(passed: number, version: number | null): Promise<void> {
    await host.ledger.transact(async (tx) => void (await host.documents.within(tx).put(PLACE, { passed }, version)));
  }

  async function prunedUses(): Promise<number> {
    return host.ledger.transact((tx) => tx.pruneLimitUses(tx.now - USE_RETENTION_MS, USES));
  }

  async function mine(): Promise<boolean> {
    duty ??= host.leaderLease("retention");
    return duty.isLeader();
  }

  const rounds = createRepeatingTask({
    task: sweep,
    everyMs: BETWEEN,
    afterFailureMs: AFTER_FAILURE,
    onFailure: (error) =>
      host.log.warn("parameters whose time is over could not be erased; trying again", { error: String(error) }),
  });

  return {
    sweep,
    start() {
      if (days !== null) rounds.start();
    },
    async stop() {
      stopped = true;
      await rounds.stop();
      await duty?.release().catch(() => undefined);
    },
  };
}
