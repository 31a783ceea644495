/**
 * Background task that erases actions older than `retention.erase_after_days`. It scans the ledger once from its start and
 * stores its position in a document. One process per store runs it; running it twice is harmless.
 */
import { setImmediate } from "node:timers/promises";
import {
  type CoreHost,
  createRepeatingTask,
  findErasureBlocker,
  type LeaderLease,
  USE_RETENTION_MS,
} from "../../src/core.ts";
import { eraseActions } from "./erase-actions.ts";

const DAY = 86_400_000;
/** Entries per page. The requests of one page are held in memory. */
const PAGE = 64;
const INTERVAL = 600_000;
const AFTER_FAILURE = 30_000;
const POSITION_KEY = "retention";
/** Limit uses removed per transaction. */
const PRUNE_LIMIT = 500;

interface Retention {
  start(): void;
  /** Erases the actions that are due. Resolves to their number. Rejects if the store fails. */
  sweep(): Promise<number>;
  stop(): Promise<void>;
}

export function createRetention(host: CoreHost): Retention {
  const days = host.config.retention.erase_after_days;
  let stopped = false;
  let lease: LeaderLease | null = null;

  async function sweep(): Promise<number> {
    if (days === null || !(await mine())) return 0;
    const due = host.clock() - days * DAY;
    const because = {
      cause: "retention",
      reason: `the configuration keeps parameters for ${days} days`,
      by: null,
    } as const;
    const place = await host.documents.get(POSITION_KEY);
    const passed = (place?.value as { passed: number } | undefined)?.passed ?? 0;
    const { size } = await host.ledger.head();
    let [at, erased, altered] = [passed, 0, 0];
    /** The first action that is not due yet or still open: the next sweep starts there. */
    let firstRemaining = Infinity;
    while (at < size && !stopped && (await mine())) {
      const before = Math.min(size, at + PAGE);
      // Read the rows and not the entries, so that damaged entries do not block the actions after them.
      const newest = await host.storage.actions({ visibility: { all: true }, before_seq: before, limit: PAGE });
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
        if (waits) firstRemaining = Math.min(firstRemaining, decision_seq);
      }
      if (rows.some(({ created_at }) => created_at >= due)) break;
      at = before;
      await setImmediate();
    }
    const reached = Math.min(at, firstRemaining);
    if (reached > passed) await storePosition(reached, place?.version ?? null);
    if (erased > 0) host.log.info("erased parameters after their retention period", { actions: erased, days });
    if (altered > 0)
      host.log.error("actions due for erasure differ from the ledger and were not erased; run assent audit", {
        actions: altered,
      });
    while (!stopped && (await pruneUses()) === PRUNE_LIMIT) await setImmediate();
    return erased;
  }

  /** Altered actions count as closed, so that they do not block the actions after them. */
  async function isOpen(id: string): Promise<boolean> {
    const row = await host.storage.action(id);
    return row !== null && row.erased_at === null && findErasureBlocker(row, host.clock()) !== null;
  }

  async function storePosition(passed: number, version: number | null): Promise<void> {
    await host.ledger.transact(
      async (tx) => void (await host.documents.within(tx).put(POSITION_KEY, { passed }, version)),
    );
  }

  async function pruneUses(): Promise<number> {
    return host.ledger.transact((tx) => tx.pruneLimitUses(tx.now - USE_RETENTION_MS, PRUNE_LIMIT));
  }

  async function mine(): Promise<boolean> {
    lease ??= host.leaderLease("retention");
    return lease.isLeader();
  }

  const rounds = createRepeatingTask({
    task: sweep,
    everyMs: INTERVAL,
    afterFailureMs: AFTER_FAILURE,
    onFailure: (error) =>
      host.log.warn("could not erase parameters after their retention period; retrying", { error: String(error) }),
  });

  return {
    sweep,
    start() {
      if (days !== null) rounds.start();
    },
    async stop() {
      stopped = true;
      await rounds.stop();
      await lease?.release().catch(() => undefined);
    },
  };
}
