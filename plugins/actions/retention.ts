/**
 * Background task that erases each kind of data after its retention period (`retention` in assent.yaml). For each kind it
 * scans the ledger once from its start and stores its position in a document. One process per store runs it; running it
 * twice is harmless.
 */
import { setImmediate } from "node:timers/promises";
import {
  type CoreHost,
  createRepeatingTask,
  ERASABLE_PARTS,
  type ErasablePart,
  findErasureBlocker,
  type LeaderLease,
  USE_RETENTION_MS,
} from "../../src/core.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import { addErasures, eraseActions, eraseParts, type ErasureResult, groupBySize } from "./erase-actions.ts";
import { hasUnreadableHold } from "./held-actions.ts";

const DAY = 86_400_000;
/** Entries per page. The requests of one page are held in memory. */
const PAGE = 64;
const INTERVAL = 600_000;
const AFTER_FAILURE = 30_000;
/** Limit uses removed per transaction. */
const PRUNE_LIMIT = 500;

/** Kinds of data with a separate retention period. `request` means the whole content of an action. */
type Kind = "request" | ErasablePart;
/** The request comes first, because its erasure includes the other kinds. */
const KINDS: readonly Kind[] = ["request", ...ERASABLE_PARTS];
const NAMES: Readonly<Record<Kind, string>> = {
  request: "parameters",
  result: "results",
  meta: "metadata",
  questions: "questions",
};
const positionKey = (kind: Kind): string => `retention/${kind}`;

interface Retention {
  start(): void;
  /** Erases what is due. Resolves to the number of erasures. Rejects if the store fails. */
  sweep(): Promise<number>;
  stop(): Promise<void>;
}

/**
 * Makes the next sweep scan the ledger from its start. Called after the release of a hold, because earlier sweeps
 * skipped the actions that the hold covered.
 */
export async function restartRetention(documents: ReturnType<CoreHost["documents"]["within"]>): Promise<void> {
  for (const kind of KINDS) {
    const place = await documents.get(positionKey(kind));
    // Write even without an earlier position, so that a sweep that is running cannot store its own.
    await documents.put(positionKey(kind), { passed: 0 }, place?.version ?? null);
  }
}

export function createRetention(host: CoreHost): Retention {
  const { request_days, result_days, meta_days, questions_days } = host.config.retention;
  const days = { request: request_days, result: result_days, meta: meta_days, questions: questions_days };
  const isConfigured = Object.values(days).some((limit) => limit !== null);
  let stopped = false;
  let lease: LeaderLease | null = null;

  async function sweep(): Promise<number> {
    if (!isConfigured || !(await mine())) return 0;
    let erased = 0;
    for (const kind of KINDS) {
      const limit = days[kind];
      if (limit !== null && !stopped) erased += await sweepKind(kind, limit);
    }
    while (!stopped && (await pruneUses()) === PRUNE_LIMIT) await setImmediate();
    return erased;
  }

  async function sweepKind(kind: Kind, limit: number): Promise<number> {
    const due = host.clock() - limit * DAY;
    const place = await host.documents.get(positionKey(kind));
    const passed = (place?.value as { passed: number } | undefined)?.passed ?? 0;
    const { size } = await host.ledger.head();
    const done: ErasureResult = { erased: 0, altered: 0, held: 0, holds: [] };
    let at = passed;
    /** At most the sequence number of the first action that is not due, open or altered. The next sweep starts here. */
    let firstRemaining = Infinity;
    while (at < size && !stopped && (await mine())) {
      const before = Math.min(size, at + PAGE);
      // List the actions by their rows, not by their entries, so that a damaged entry does not block the actions after
      // it.
      const newest = await host.storage.actions({ visibility: { all: true }, before_seq: before, limit: PAGE });
      const rows = newest.filter(({ decision_seq }) => decision_seq >= at);
      const kept = rows.filter(({ request }) => request !== "");
      const over = kept.filter((row) => row.created_at < due && row[kind] !== null);
      for (const group of groupBySize(over)) {
        const result = await eraseGroup(host, kind, limit, group);
        addErasures(done, result);
        // Visit an altered row again in the next sweep, because someone may restore it.
        if (result.altered > 0) firstRemaining = Math.min(firstRemaining, at);
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
    // A hold whose identifier cannot be read covers every action. Restoring the identifier starts no new scan, so do
    // not advance the position.
    if (reached > passed && !(await hasUnreadableHold(host)))
      await storePosition(kind, reached, place?.version ?? null);
    logErasures(host, kind, limit, done);
    return done.erased;
  }

  /**
   * Altered and held actions count as closed, so that they do not block the actions after them in this sweep. The release
   * of a hold starts the scan again.
   */
  async function isOpen(id: string): Promise<boolean> {
    const row = await host.storage.action(id);
    return row !== null && row.erased_at === null && findErasureBlocker(row, host.clock()) !== null;
  }

  async function storePosition(kind: Kind, passed: number, version: number | null): Promise<void> {
    await host.ledger.transact(
      async (tx) => void (await host.documents.within(tx).put(positionKey(kind), { passed }, version)),
    );
  }

  async function pruneUses(): Promise<number> {
    return host.ledger.transact(async (tx) => {
      const until = tx.now - USE_RETENTION_MS;
      return Math.max(await tx.pruneLimitUses(until, PRUNE_LIMIT), await tx.prunePastActions(until, PRUNE_LIMIT));
    });
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
      host.log.warn("could not erase data after its retention period; retrying", { error: String(error) }),
  });

  return {
    sweep,
    start() {
      if (isConfigured) rounds.start();
    },
    async stop() {
      stopped = true;
      await rounds.stop();
      await lease?.release().catch(() => undefined);
    },
  };
}

function eraseGroup(host: CoreHost, kind: Kind, limit: number, rows: readonly ActionRow[]): Promise<ErasureResult> {
  const ids = rows.map(({ id }) => id);
  const reason = `the configuration keeps ${NAMES[kind]} for ${limit} days`;
  return host.ledger.transact((tx) =>
    kind === "request"
      ? eraseActions(host, tx, ids, { cause: "retention", reason, by: null })
      : eraseParts(host, tx, ids, kind, reason),
  );
}

function logErasures(host: CoreHost, kind: Kind, limit: number, done: ErasureResult): void {
  const { erased, altered, held, holds } = done;
  if (erased > 0) host.log.info(`erased ${NAMES[kind]} after their retention period`, { actions: erased, days: limit });
  if (held > 0) host.log.info("did not erase actions under legal hold", { actions: held, holds: holds.join(", ") });
  if (altered > 0)
    host.log.error("actions due for erasure differ from the ledger and were not erased; run assent audit", {
      actions: altered,
    });
}
