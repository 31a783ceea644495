/**
 * Background task that erases each kind of data after its retention period (`retention` in assent.yaml). For each kind
 * it scans the ledger once from its start and stores its position in a document. One process per store runs it; running
 * it twice is harmless.
 */
import { setImmediate } from "node:timers/promises";
import {
  type CoreHost,
  createRepeatingTask,
  ERASABLE_PARTS,
  type ErasablePart,
  type LeaderLease,
  USE_RETENTION_MS,
} from "../../src/core.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import {
  addErasureResult,
  eraseActions,
  eraseActionParts,
  type ErasureResult,
  findErasureBlocker,
  groupBySize,
} from "./erase.ts";
import { hasUnreadableHold } from "./holds.ts";

const DAY = 86_400_000;
/** Entries per page. The requests of one page are held in memory. */
const PAGE_SIZE = 64;
const INTERVAL_MS = 600_000;
const AFTER_FAILURE = 30_000;
/** Maximum number of outdated limit uses, and of outdated past actions, that one transaction removes. */
const PRUNE_LIMIT = 500;

/** Kinds of data, each with its retention period. `request` means the whole content of an action. */
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

/** Days after the decision; null for never, or together with the request. */
interface RetentionPeriods {
  request_days: number | null;
  result_days: number | null;
  meta_days: number | null;
  questions_days: number | null;
}

interface Retention {
  start(): void;
  /**
   * Erases content that is past its retention period, if this process is the leader. Resolves to the number of
   * erasures. Rejects if the store fails.
   */
  sweep(): Promise<number>;
  stop(): Promise<void>;
}

/**
 * Makes the next sweep scan the ledger from its start. Called after the release of a hold, because earlier sweeps
 * skipped the actions that the hold covered.
 */
export async function restartRetentionSweep(documents: ReturnType<CoreHost["documents"]["within"]>): Promise<void> {
  for (const kind of KINDS) {
    const stored = await documents.get(positionKey(kind));
    // Write even without an earlier position, so that a sweep that is running cannot store its own.
    await documents.put(positionKey(kind), { passed: 0 }, stored?.version ?? null);
  }
}

export function createRetentionTask(host: CoreHost, periods: RetentionPeriods): Retention {
  return new RetentionSweeps(host, periods);
}

class RetentionSweeps implements Retention {
  private readonly host: CoreHost;
  private readonly days: Readonly<Record<Kind, number | null>>;
  private readonly rounds: ReturnType<typeof createRepeatingTask>;
  private lease: LeaderLease | null = null;
  private stopped = false;

  constructor(host: CoreHost, { request_days, result_days, meta_days, questions_days }: RetentionPeriods) {
    this.host = host;
    this.days = { request: request_days, result: result_days, meta: meta_days, questions: questions_days };
    this.rounds = createRepeatingTask({
      task: () => this.sweep(),
      everyMs: INTERVAL_MS,
      afterFailureMs: AFTER_FAILURE,
      onFailure: (error) =>
        host.log.warn("could not erase data after its retention period; retrying", { error: String(error) }),
    });
  }

  start(): void {
    if (this.isConfigured()) this.rounds.start();
  }

  async stop(): Promise<void> {
    this.stopped = true;
    await this.rounds.stop();
    await this.lease?.release().catch(() => undefined);
  }

  async sweep(): Promise<number> {
    if (!this.isConfigured() || !(await this.isLeader())) return 0;
    let erased = 0;
    for (const kind of KINDS) {
      const limit = this.days[kind];
      if (limit !== null && !this.stopped) erased += await this.sweepKind(kind, limit);
    }
    while (!this.stopped && (await this.pruneUses()) === PRUNE_LIMIT) await setImmediate();
    return erased;
  }

  private isConfigured(): boolean {
    return Object.values(this.days).some((limit) => limit !== null);
  }

  private async isLeader(): Promise<boolean> {
    this.lease ??= this.host.leaderLease("retention");
    return this.lease.isLeader();
  }

  private async sweepKind(kind: Kind, limit: number): Promise<number> {
    const { host } = this;
    const due = host.clock() - limit * DAY;
    const stored = await host.documents.get(positionKey(kind));
    const passed = (stored?.value as { passed: number } | undefined)?.passed ?? 0;
    const { size } = await host.ledger.head();
    const done: ErasureResult = { erased: 0, altered: 0, held: 0, holds: [] };
    let position = passed;
    /**
     * Sequence number at which the next sweep must continue: the first action that is not due or is open, or the page of
     * an altered action. Infinity if this sweep found none of them.
     */
    let firstRemaining = Infinity;
    while (position < size && !this.stopped && (await this.isLeader())) {
      const before = Math.min(size, position + PAGE_SIZE);
      // Read the rows instead of the entries, so that damaged entries do not block the actions after them.
      const newest = await host.storage.actions({ visibility: { all: true }, before_seq: before, limit: PAGE_SIZE });
      const rows = newest.filter(({ decision_seq }) => decision_seq >= position);
      const unerased = rows.filter(({ request }) => request !== "");
      const overdue = unerased.filter((row) => row.created_at < due && row[kind] !== null);
      for (const group of groupBySize(overdue)) {
        const result = await eraseGroup(host, kind, limit, group);
        addErasureResult(done, result);
        // Someone may restore the altered row.
        if (result.altered > 0) firstRemaining = Math.min(firstRemaining, position);
      }
      for (const { decision_seq, id, created_at } of unerased) {
        const waits = created_at >= due || (await this.isOpen(id));
        if (waits) firstRemaining = Math.min(firstRemaining, decision_seq);
      }
      if (rows.some(({ created_at }) => created_at >= due)) break;
      position = before;
      await setImmediate();
    }
    const reached = Math.min(position, firstRemaining);
    // Do not store the position while a hold has an identifier that cannot be read. Such a hold covers every action,
    // and restoring its identifier does not start a new scan.
    if (reached > passed && !(await hasUnreadableHold(host)))
      await this.storePosition(kind, reached, stored?.version ?? null);
    logErasures(host, kind, limit, done);
    return done.erased;
  }

  /**
   * Returns true if the action can still run or get a result, so that a later sweep must erase it. Does not consider
   * legal holds, because the release of a hold starts the scan again.
   */
  private async isOpen(id: string): Promise<boolean> {
    const row = await this.host.storage.action(id);
    return row !== null && row.erased_at === null && findErasureBlocker(row, this.host.clock()) !== null;
  }

  private async storePosition(kind: Kind, passed: number, version: number | null): Promise<void> {
    const { ledger, documents } = this.host;
    await ledger.transact(async (tx) => void (await documents.within(tx).put(positionKey(kind), { passed }, version)));
  }

  private async pruneUses(): Promise<number> {
    return this.host.ledger.transact(async (tx) => {
      const until = tx.now - USE_RETENTION_MS;
      return Math.max(await tx.pruneLimitUses(until, PRUNE_LIMIT), await tx.prunePastActions(until, PRUNE_LIMIT));
    });
  }
}

function eraseGroup(host: CoreHost, kind: Kind, limit: number, rows: readonly ActionRow[]): Promise<ErasureResult> {
  const ids = rows.map(({ id }) => id);
  const reason = `the configuration keeps ${NAMES[kind]} for ${limit} days`;
  return host.ledger.transact((tx) =>
    kind === "request"
      ? eraseActions(host, tx, ids, { cause: "retention", reason, by: null })
      : eraseActionParts(host, tx, ids, kind, reason),
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
