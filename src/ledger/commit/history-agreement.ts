/**
 * Lets processes that share a database compare their histories. After a failover or a restore, the database can lack
 * entries that one process has signed or read, and a process that has read less cannot detect this. So after each
 * restart, failover and restore (a new "incarnation"), the processes compare their histories before any of them appends
 * or signs:
 * 1. Every process writes a row with the size and root of the newest ledger that it has signed or read.
 * 2. Under the ledger's lock, one process verifies that the stored tree contains every row of this incarnation, and
 * records the incarnation as settled. Every process that acquires the lock reads this in the same statement.
 * 3. Step 2 happens at least MIN_WAIT_MS after the first row. The process waits up to MAX_WAIT_MS for each other
 * process that was alive before. It knows these processes from the rows in the database, and from its own memory,
 * because a restored database has old rows.
 * 4. A row that the tree does not contain keeps the incarnation unsettled: no process appends or signs until an
 * operator restores the right database or accepts the rollback (`acceptRollback`).
 *
 * If the process crashes before step 2, the incarnation stays unsettled, and any other process can complete the steps.
 * A process that joins after step 2 and has read more entries refuses to use the database (continuity.ts).
 */
import { setTimeout as pause } from "node:timers/promises";
import type { Logger } from "../../contract/host.ts";
import {
  SETTLED_INCARNATION_KEY,
  StorageError,
  type ProcessRow,
  type ProcessTable,
  type Storage,
} from "../../contract/storage.ts";
import { equalBytes } from "../../domain/hash.ts";
import { createProofReader } from "../reader.ts";

/**
 * Minimum time that other processes have to report after the first process, even if all known processes have reported.
 * Milliseconds.
 */
const MIN_WAIT_MS = 1_000;
/** Maximum wait for a process that was alive before and does not report. Milliseconds. */
const MAX_WAIT_MS = 5_000;
/**
 * A process counts as ended if its row is older than this. After a restart, ages are measured relative to the newest
 * row. Milliseconds.
 */
const ALIVE_MS = 15_000;
/** Interval at which a process renews its row. Milliseconds. */
const RENEW_INTERVAL_MS = 5_000;
/**
 * After a restart, a process whose row is older than this counts as ended, even if it has the newest row. Milliseconds.
 */
const FORGOTTEN_AFTER_MS = 60_000;
/** Interval at which the rows are read again. Milliseconds. */
const POLL_INTERVAL_MS = 100;
/** Time limit for a decision that waits for the processes to agree. Milliseconds. */
const TIMEOUT_MS = 8_000;
/** With `acceptRollback`, a process whose row is older than this counts as ended. Milliseconds. */
const ENDED_AFTER_MS = 2_000;

/** Size and root of a ledger. */
interface TreeHead {
  size: number;
  root: Uint8Array;
}

interface HistoryAgreementOptions {
  storage: Pick<Storage, "write"> & { processes: ProcessTable };
  instance: string;
  /** Returns the newest ledger that this process has signed or read. */
  newest(): TreeHead;
  /** Whether to ignore the histories of processes that have ended. */
  acceptRollback: boolean;
  log: Pick<Logger, "info" | "warn" | "error">;
  steady?(): number;
}

type ProcessList = Awaited<ReturnType<ProcessTable["list"]>>;

export class HistoryAgreement {
  private readonly options: HistoryAgreementOptions;
  private readonly steady: () => number;
  /** Other processes that were alive when this process last read a settled database. */
  private known = new Set<string>();
  private running: Promise<void> | null = null;
  private reported: { incarnation: string; at: number } | null = null;
  /**
   * Time when this process first read the unsettled incarnation. Does not use the database's clock, which can be set
   * back.
   */
  private first = { incarnation: "", at: 0 };
  private lastError = "";

  constructor(options: HistoryAgreementOptions) {
    this.options = options;
    this.steady = options.steady ?? (() => performance.now());
  }

  /**
   * Reads the rows, renews the row of this process, and starts a comparison of the histories if the database is not
   * settled. Resolves to the head.
   */
  async poll(): Promise<ProcessList["head"]> {
    const listed = await this.readProcesses();
    if (listed.head.server?.isSettled === false) void this.awaitAgreement().catch(() => undefined);
    return listed.head;
  }

  /**
   * Resolves once the current incarnation of the database is settled. Rejects with StorageError:
   * - "corrupt" if the database lacks entries or has a different history.
   * - "unavailable" if the processes have not agreed within TIMEOUT_MS.
   */
  awaitAgreement(): Promise<void> {
    this.running ??= this.reachAgreement().finally(() => (this.running = null));
    return this.running;
  }

  /** Writes the newest ledger that this process has read, even to a database that it rejects. */
  async reportNewest(seen: TreeHead): Promise<void> {
    const { storage, instance } = this.options;
    await storage.processes.report({ instance, size: seen.size, root: seen.root });
  }

  async leave(): Promise<void> {
    await this.running?.catch(() => undefined);
    await this.options.storage.processes.remove(this.options.instance).catch(() => undefined);
  }

  private async readProcesses(): Promise<ProcessList> {
    const { storage, instance } = this.options;
    const listed = await storage.processes.list();
    const { server } = listed.head;
    if (server === undefined) return listed;
    const isDue =
      this.reported === null ||
      this.reported.incarnation !== server.incarnation ||
      !server.isSettled ||
      this.steady() - this.reported.at >= RENEW_INTERVAL_MS;
    if (isDue) {
      await this.reportNewest(this.options.newest());
      this.reported = { incarnation: server.incarnation, at: this.steady() };
    }
    if (server.isSettled)
      this.known = new Set(
        listed.processes
          .filter((row) => row.instance !== instance && row.age_ms <= ALIVE_MS)
          .map((row) => row.instance),
      );
    return listed;
  }

  private async reachAgreement(): Promise<void> {
    const end = this.steady() + TIMEOUT_MS;
    for (;;) {
      const { head, processes } = await this.readProcesses();
      if (head.server === undefined || head.server.isSettled) return;
      const { incarnation } = head.server;
      const missing = this.missing(processes, incarnation);
      if (this.first.incarnation !== incarnation) this.first = { incarnation, at: this.steady() };
      const elapsed = Math.max(
        this.steady() - this.first.at,
        ...rowsOfIncarnation(processes, incarnation).map((row) => row.since_ms),
      );
      if (elapsed >= MIN_WAIT_MS && (missing.length === 0 || elapsed >= MAX_WAIT_MS)) {
        await this.settle(incarnation, missing);
        return;
      }
      if (this.steady() > end)
        throw new StorageError(
          "unavailable",
          `the processes have not agreed yet on the database, which was restarted or replaced; waiting for ${missing.join(", ")}`,
        );
      await pause(POLL_INTERVAL_MS);
    }
  }

  /** Returns the processes that were alive before and have not reported to this incarnation. */
  private missing(processes: readonly ProcessRow[], incarnation: string): string[] {
    const reported = new Set(rowsOfIncarnation(processes, incarnation).map((row) => row.instance));
    const earlier = processes.filter((row) => row.incarnation !== incarnation);
    // Compute ages relative to the newest row, because the database may have been unavailable for some time.
    const newest = Math.min(...earlier.map((row) => row.age_ms));
    const alive = earlier.filter((row) => row.age_ms <= FORGOTTEN_AFTER_MS && row.age_ms - newest <= ALIVE_MS);
    return [...new Set([...this.known, ...alive.map((row) => row.instance)])].filter(
      (instance) => instance !== this.options.instance && !reported.has(instance),
    );
  }

  /**
   * Verifies under the ledger's lock that the stored tree contains the ledger of each process that reported to this
   * incarnation, then records the incarnation as settled. Rejects with StorageError "corrupt" if the tree lacks one;
   * with `acceptRollback`, removes the row instead if its process has ended.
   */
  private async settle(incarnation: string, missing: readonly string[]): Promise<void> {
    const { storage, instance, acceptRollback, log } = this.options;
    const ended: string[] = [];
    await storage
      .write(async (tx) => {
        const head = await tx.head();
        // Another process has settled this incarnation, or the database was replaced again.
        if (head.server?.incarnation !== incarnation || head.server.isSettled) return;
        const listed = await storage.processes.list();
        if (listed.head.server?.incarnation !== incarnation) return;
        const rows = [
          ...rowsOfIncarnation(listed.processes, incarnation),
          { instance, age_ms: 0, ...this.options.newest() },
        ];
        const proofs = createProofReader(tx);
        for (const row of rows) {
          const contains =
            row.size === head.size
              ? equalBytes(row.root, head.root)
              : row.size < head.size && equalBytes(await proofs.rootAt(row.size), row.root);
          if (contains) continue;
          if (acceptRollback && row.age_ms > ENDED_AFTER_MS) ended.push(row.instance);
          else throw contradictionError(row, head.size, instance);
        }
        await tx.putMeta(SETTLED_INCARNATION_KEY, incarnation);
      })
      .catch((error: unknown) => {
        this.logOnce(error);
        throw error;
      });
    this.lastError = "";
    for (const processId of ended) await storage.processes.remove(processId);
    log.info("the processes agreed on the database, which was restarted or replaced", { not_heard_of: missing });
  }

  private logOnce(error: unknown): void {
    const text = error instanceof Error ? error.message : String(error);
    if (text !== this.lastError) this.options.log.error(text);
    this.lastError = text;
  }
}

const rowsOfIncarnation = (processes: readonly ProcessRow[], incarnation: string): ProcessRow[] =>
  processes.filter((row) => row.incarnation === incarnation);

function contradictionError(row: Pick<ProcessRow, "instance" | "size">, size: number, instance: string): StorageError {
  const processName = row.instance === instance ? "this process" : `the process ${row.instance}`;
  const difference = row.size > size ? `lacks entries from ${size} on` : "is another history";
  return new StorageError(
    "corrupt",
    `the database holds ${size} entries, and ${processName} has signed or seen ${row.size}: the database ${difference}. No process appends or signs. Bring the right database back; or, to go on with this one, stop every process, run assent audit, and start with --accept-rollback`,
  );
}
