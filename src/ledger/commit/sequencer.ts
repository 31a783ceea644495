/**
 * The single writer of the ledger in this process. Jobs that arrive while a batch commits form the next batch. If no
 * batch is running, a job commits immediately. docs/design.md describes the effect of a crash at each step.
 */
import { AsyncResource } from "node:async_hooks";
import { setImmediate } from "node:timers";
import { setTimeout } from "node:timers/promises";
import { Refusal } from "../../contract/errors.ts";
import type { Logger } from "../../contract/host.ts";
import {
  PreparationRequired,
  type Job,
  type Prefetch,
  type SignedCheckpoint,
  type UrgentJob,
} from "../../contract/ledger.ts";
import {
  StorageError,
  type LedgerHead,
  type Storage,
  type StorageReader,
  type StorageTransaction,
  type StoredHead,
} from "../../contract/storage.ts";
import type { RequestTrace } from "../../contract/tracer.ts";
import { equalBytes } from "../../domain/hash.ts";
import { rootFromEdge } from "../../domain/merkle.ts";
import { emptyPolicySet } from "../../domain/policy/compile/compile.ts";
import { runBatch, type BatchContext, type BatchResult } from "./batch.ts";
import type { HeadReader } from "../head-reader.ts";
import type { LedgerClock } from "./clock.ts";
import { extendsTrustedHead, canExtend, isSameHead, type TrustedHistory } from "./continuity.ts";
import { createCountBounds } from "./count-bounds.ts";
import {
  insertAfterUrgent,
  selectBatch,
  JobFailedError,
  JobNotPreparedError,
  reportTiming,
  startTiming,
  type QueuedJob,
} from "./job.ts";
import { createPreparations, type Preparations } from "./preparations.ts";
import { WrittenRows } from "./written-rows.ts";

export interface SequencerOptions extends TrustedHistory {
  storage: Storage;
  heads: HeadReader;
  log: Logger;
  /** Returns the trace of the running request; null if it is not traced. */
  trace(): RequestTrace | null;
  clock: LedgerClock;
  maxBatch: number;
  jobMs: BatchContext["jobMs"];
  policies: BatchContext["policies"];
  verifyPast: BatchContext["verifyPast"];
  /**
   * Reads changes of keys, agents and other cached state up to this head. Called under the lock before the jobs run.
   */
  follow(tx: StorageReader, head: LedgerHead): Promise<void>;
  confirm: BatchContext["confirm"];
  agentFacts: BatchContext["agentFacts"];
  states: BatchContext["states"];
  bars: BatchContext["bars"];
  confirmUser: BatchContext["confirmUser"];
  outbox: BatchContext["outbox"];
  seals: BatchContext["seals"];
  entryFault: BatchContext["entryFault"];
  /** Stores a committed head outside the store, before the callers have their responses. */
  keepHead(head: LedgerHead): void;
  /** Resolves once the processes have agreed on the database. Rejects with StorageError. */
  agree(): Promise<void>;
  /** Returns the reason to refuse jobs if entries have been unsigned for too long, otherwise null. */
  unsigned(): string | null;
  /** Returns a signed checkpoint that is not stored yet. */
  unstoredCheckpoint(): { size: number; note: string } | null;
  checkpointStored(size: number): void;
  /**
   * Called after the callers have their responses, in the order of commits.
   * @param base a signed checkpoint that the head is known to extend
   */
  committed(result: Pick<BatchResult, "entries" | "recorded" | "head">, base: SignedCheckpoint | null): void;
  /** Called after each transaction of a batch. `lockedMs` is how long the transaction held the lock. */
  held(lockedMs: number): void;
  /** Called when the queue is empty. */
  idle(): void;
}

/** Result of one attempt to run a batch. */
type Attempt =
  | { outcome: "committed"; result: BatchResult }
  /** The batch was not committed, or its outcome is unknown. All callers got an error. */
  | { outcome: "refused" }
  /** The transaction conflicted with a transaction of another process. Nothing was written. */
  | { outcome: "conflict"; error: StorageError }
  /** The processes have not agreed on the database yet. */
  | { outcome: "unsettled" }
  | { outcome: "batch not prepared"; missing: PreparationRequired }
  | { outcome: "job not prepared"; unprepared: JobNotPreparedError }
  | { outcome: "job failed"; poisoned: JobFailedError };

class UnsettledError extends Error {}

/**
 * Maximum number of retries after conflicts. The pause before retry n is random, and shorter than CONFLICT_PAUSE times
 * 2^n milliseconds.
 */
const MAX_CONFLICTS = 8;
const CONFLICT_PAUSE = 10;
/** Maximum number of times that one batch waits for the processes to agree, if the database is replaced repeatedly. */
const MAX_AGREEMENT_WAITS = 3;

export class Sequencer {
  private readonly options: SequencerOptions;
  private readonly preparations: Preparations;
  readonly written: WrittenRows;
  private readonly countBounds = createCountBounds();
  private queue: QueuedJob[] = [];
  /** The loop serves all requests, so do not run it in the trace context of the request that started it. */
  private readonly runDetached = AsyncResource.bind(() => this.run());
  private running: Promise<void> | null = null;
  /** The last head that this process committed, or a later head that was verified to extend it. */
  private trusted: LedgerHead;
  /** The newest signed checkpoint that `trusted` is known to extend. */
  private base: SignedCheckpoint | null;
  /**
   * Whether the last batch found entries of another process. If so, the next batch prefetches such entries in the round
   * trip that acquires the lock.
   */
  private othersWrite = false;
  private isClosed = false;
  private haltedBecause: string | null = null;

  constructor(options: SequencerOptions, start: LedgerHead) {
    this.options = options;
    this.written = new WrittenRows(options.log);
    options.heads.lastCommitted = start;
    this.trusted = start;
    this.base = options.signed();
    this.preparations = createPreparations({
      refuse: (live, error) => this.refuse(live, error),
      queue: (pending) => this.enqueue(pending),
    });
  }

  transact<T>(job: Job<T>, prefetch?: Prefetch): Promise<T> {
    // Do not prefetch from a store in this process: it responds immediately, so a prefetch would cost more time than it
    // saves.
    return this.enqueueJob(job, false, this.options.storage.exclusive ? undefined : prefetch);
  }

  transactFirst<T>(job: UrgentJob<T>): Promise<T> {
    return this.enqueueJob(job, true);
  }

  /** Returns the reason why the ledger no longer accepts writes; null if it accepts them. */
  halted(): string | null {
    return this.haltedBecause;
  }

  halt(reason: string): void {
    this.haltedBecause ??= reason;
    this.options.log.error(reason);
  }

  /** Stops accepting jobs. Resolves when all accepted jobs are finished. */
  async drain(): Promise<void> {
    this.isClosed = true;
    while (this.running !== null || this.preparations.waiting() > 0)
      await Promise.all([this.running, this.preparations.settled()]);
  }

  private enqueueJob<T>(job: QueuedJob["job"], urgent: boolean, prefetch?: Prefetch): Promise<T> {
    if (this.isClosed)
      return Promise.reject(
        new Refusal("SHUTTING_DOWN", "the service is stopping; send the request again to another process, or later"),
      );
    return new Promise<T>((resolve, reject) => {
      const timing = startTiming(this.options.trace());
      const pending: QueuedJob = {
        job,
        urgent,
        prefetch,
        timing,
        resolve: resolve as (value: unknown) => void,
        reject,
      };
      if (urgent) this.enqueue(pending);
      else {
        this.queue.push(pending);
        this.running ??= this.runDetached();
      }
    });
  }

  private enqueue(pending: QueuedJob): void {
    this.queue = insertAfterUrgent(this.queue, pending);
    this.running ??= this.runDetached();
  }

  private async run(): Promise<void> {
    for (;;) {
      await this.waitForMoreJobs();
      if (this.queue.length === 0) break;
      const jobs = selectBatch(this.queue, this.options.maxBatch);
      this.queue = this.queue.slice(jobs.length);
      await this.commit(jobs);
    }
    this.running = null;
    this.options.idle();
  }

  /**
   * Waits for more jobs, one turn of the event loop at a time, as long as each turn adds some. A single job waits for
   * one turn. Larger batches are faster overall, because a disk sync takes as long as many decisions.
   */
  private async waitForMoreJobs(): Promise<void> {
    let seen = -1;
    while (this.queue.length > seen && this.queue.length < this.options.maxBatch) {
      seen = this.queue.length;
      await nextTurn();
    }
  }

  private async commit(jobs: QueuedJob[]): Promise<void> {
    let live = jobs;
    let times = 0;
    let conflicts = 0;
    let agreementWaits = 0;
    while (live.length > 0) {
      const attempt = await this.attempt(live);
      switch (attempt.outcome) {
        case "committed":
          return this.answer(attempt.result);
        case "refused":
          return;
        case "unsettled":
          try {
            if (++agreementWaits > MAX_AGREEMENT_WAITS)
              throw new StorageError("unavailable", "the database was replaced repeatedly");
            await this.options.agree();
          } catch (error) {
            return this.refuse(live, error);
          }
          continue;
        case "batch not prepared":
          if (await this.preparations.ofBatch(attempt.missing, live, ++times)) continue;
          return;
        case "job not prepared": {
          const { unprepared } = attempt;
          if (!this.preparations.ofJob(unprepared)) live = live.filter((pending) => pending !== unprepared.pending);
          continue;
        }
        case "conflict":
          if (++conflicts > MAX_CONFLICTS) return this.refuse(live, attempt.error);
          // Nothing was committed and no caller has a response, so the batch can run again.
          await setTimeout(Math.random() * CONFLICT_PAUSE * 2 ** conflicts);
          continue;
        case "job failed": {
          const { pending, cause } = attempt.poisoned;
          this.options.log.error("a job failed within its batch; the batch runs again without it", {
            error: stackOf(cause),
          });
          pending.reject(cause);
          live = live.filter((other) => other !== pending);
          continue;
        }
      }
    }
  }

  private answer(result: BatchResult): void {
    this.options.heads.lastCommitted = result.head;
    this.trusted = result.head;
    result.written.committed(result.entries);
    if (result.entries.length > 0) this.options.keepHead(result.head);
    for (const outcome of result.outcomes) {
      if ("missing" in outcome) continue;
      if (outcome.pending.timing !== null) reportTiming(outcome.pending.timing);
      if ("refusal" in outcome) outcome.pending.reject(outcome.refusal);
      else outcome.pending.resolve(outcome.value);
    }
    for (const outcome of result.outcomes)
      if ("missing" in outcome) this.prepareLater(new JobNotPreparedError(outcome.pending, outcome.missing));
    if (result.entries.length === 0) return;
    // The callers already have their responses. An error here must not end the loop, because later jobs would never
    // run.
    try {
      this.options.committed(result, this.base);
    } catch (error) {
      this.halt(
        `the work after the commit of the head (size ${result.head.size}) failed: ${error instanceof Error ? error.message : String(error)}; nothing more is written: stop the service and run an audit`,
      );
    }
  }

  /** Queues the job again once it is prepared. */
  private prepareLater(unprepared: JobNotPreparedError): void {
    if (this.preparations.ofJob(unprepared)) this.enqueue(unprepared.pending);
  }

  private refuse(live: readonly QueuedJob[], error: unknown): void {
    const failure =
      error instanceof StorageError
        ? error
        : new StorageError("unavailable", "the batch could not be committed", { cause: error });
    this.options.log.error("the store rejected a batch; its callers get an error and no decision", {
      kind: failure.kind,
      jobs: live.length,
      error: failure.message,
    });
    for (const pending of live) pending.reject(failure);
  }

  /** Runs the batch once. Adds jobs that arrive while it waits for the lock to `live`. */
  private async attempt(live: QueuedJob[]): Promise<Attempt> {
    const { options } = this;
    // A stop must work in any case.
    const unsigned = live[0]?.urgent === true ? null : options.unsigned();
    if (unsigned !== null) {
      for (const pending of live) pending.reject(new StorageError("unavailable", unsigned));
      return { outcome: "refused" };
    }
    let lockedAt: number | null = null;
    try {
      if (this.haltedBecause !== null) throw new StorageError("corrupt", this.haltedBecause);
      const checkpoint = options.unstoredCheckpoint();
      const result = await options.storage.write(
        async (tx) => {
          lockedAt = performance.now();
          const before = await this.headUnderLock(tx);
          await options.follow(tx, before);
          this.closeBatch(live);
          const done = await runBatch(tx, before, live, this.contextFor(live));
          if (checkpoint !== null && done.entries.length > 0) await tx.putCheckpoint(checkpoint.size, checkpoint.note);
          return done;
        },
        this.othersWrite ? { readFrom: this.trusted.size } : {},
      );
      const last = result.entries.at(-1);
      if (last !== undefined) options.clock.observeEntryTime(last.created_at);
      if (checkpoint !== null && result.entries.length > 0) options.checkpointStored(checkpoint.size);
      return { outcome: "committed", result };
    } catch (error) {
      if (error instanceof JobFailedError) return { outcome: "job failed", poisoned: error };
      if (error instanceof JobNotPreparedError) return { outcome: "job not prepared", unprepared: error };
      if (error instanceof PreparationRequired) return { outcome: "batch not prepared", missing: error };
      if (error instanceof UnsettledError) return { outcome: "unsettled" };
      options.heads.lastCommitted = null;
      if (error instanceof StorageError && error.kind === "conflict") return { outcome: "conflict", error };
      this.refuse(live, error);
      return { outcome: "refused" };
    } finally {
      if (lockedAt !== null) options.held(performance.now() - lockedAt);
    }
  }

  private contextFor(live: readonly QueuedJob[]): BatchContext {
    const { clock, policies, verifyPast, confirm, agentFacts, states, bars, confirmUser, outbox, seals } = this.options;
    const { jobMs, entryFault } = this.options;
    return {
      now: clock.now(),
      policies: live[0]?.urgent === true ? withoutPolicies : policies,
      verifyPast,
      confirm,
      agentFacts,
      states,
      bars,
      confirmUser,
      outbox,
      seals,
      written: this.written,
      countBounds: this.countBounds,
      jobMs,
      entryFault,
    };
  }

  /**
   * Closes the batch when the lock is acquired. Jobs that arrived during the wait for the lock join it, so that they do
   * not wait again.
   */
  private closeBatch(live: QueuedJob[]): void {
    if (this.queue[0]?.urgent !== live[0]?.urgent) return;
    const more = selectBatch(this.queue, this.options.maxBatch - live.length);
    this.queue = this.queue.slice(more.length);
    live.push(...more);
  }

  private async headUnderLock(tx: StorageTransaction): Promise<StoredHead> {
    const head = await tx.head();
    if (head.server?.isSettled === false) throw new UnsettledError();
    await this.assertContinuity(tx, head);
    const last = this.options.heads.lastCommitted;
    this.othersWrite = last === null || !isSameHead(head, last);
    // Another process, whose clock is ahead, may have written the last entry.
    if (head.size > 0 && this.othersWrite) {
      const [newest] = await tx.entries(head.size - 1, head.size);
      if (newest !== undefined) this.options.clock.observeEntryTime(newest.created_at);
    }
    return head;
  }

  /**
   * Verifies that the head under the lock equals or extends the head that this process committed, that its right edge
   * matches the tree, and that the service wrote it. If not, someone changed the store outside the ledger, and the
   * service would sign a second history, or use policies that no entry activated.
   */
  private async assertContinuity(tx: StorageReader, head: LedgerHead): Promise<void> {
    const { options } = this;
    const last = options.heads.lastCommitted;
    if (canExtend(options.seen(), head) && (head.size === 0 || equalBytes(rootFromEdge(head.edge), head.root))) {
      if (last !== null && isSameHead(head, last)) return;
      const signed = options.signed();
      if (
        !(last !== null && options.storage.exclusive) &&
        options.seals.isOwnHead(head) &&
        (await extendsTrustedHead(tx, this.trusted, head, options))
      ) {
        this.trusted = head;
        this.base = signed;
        return;
      }
    }
    const reason = `the ledger's head (size ${head.size}) does not continue what this process committed or signed; nothing more is written: stop the service and run an audit`;
    this.halt(reason);
    throw new StorageError("corrupt", reason);
  }
}

/** Stops must work even if the active policies cannot be loaded. An empty policy set denies everything. */
const withoutPolicies: BatchContext["policies"] = (_tx, digest) =>
  Promise.resolve({ digest, compiled: emptyPolicySet(), source: null });

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
