/**
 * The single writer of the ledger in this process. Jobs that arrive while a batch commits form the
 * next batch; a lone job commits at once.
 *
 * Order of a commit, and what a crash there means:
 * 1. one transaction: head read under its lock, jobs, entries, tiles, head. Crash: nothing happened.
 * 2. commit. Crash right after: it happened, nobody was told; an idempotency key finds it again.
 * 3. callers are answered, subscribers told. Crash: subscribers catch up by sequence.
 * 4. the committed head is signed. Crash: the next start signs it again; the signature is deterministic.
 * 5. the signature is stored with the next batch, or when the queue is idle.
 */
import { setImmediate } from "node:timers";
import { setTimeout } from "node:timers/promises";
import { Refusal } from "../contract/errors.ts";
import { NotPrepared, type Job, type Logger, type Prefetch, type UrgentJob } from "../contract/host.ts";
import { StorageError, type EntryRow, type LedgerHead, type Storage, type StorageReader } from "../contract/storage.ts";
import { equalBytes } from "../domain/hash.ts";
import { rootOfEdge } from "../domain/merkle.ts";
import type { LedgerClock } from "./clock.ts";
import { goesOn, mayFollow, sameHead, type TrustedHistory } from "./continuity.ts";
import { runBatch, type BatchContext, type BatchResult } from "./batch.ts";
import { emptyPolicySet } from "../domain/policy/compile.ts";
import { behindUrgent, takeBatch, Poisoned, Unprepared, type Pending } from "./job.ts";
import { createPreparations } from "./preparations.ts";

export interface SequencerOptions extends TrustedHistory {
  storage: Storage;
  log: Logger;
  clock: LedgerClock;
  maxBatch: number;
  jobMs: BatchContext["jobMs"];
  policies: BatchContext["policies"];
  /** Under the lock, before the jobs: brings what is known of keys and agents up to this head. */
  follow(tx: StorageReader, head: LedgerHead): Promise<void>;
  confirm: BatchContext["confirm"];
  agentFacts: BatchContext["agentFacts"];
  stops: BatchContext["stops"];
  outbox: BatchContext["outbox"];
  entryFault: BatchContext["entryFault"];
  /** A signature that waits to be stored. */
  unstoredCheckpoint(): { size: number; note: string } | null;
  checkpointStored(size: number): void;
  /** Called after the callers were answered, in order of commits. */
  committed(entries: readonly EntryRow[], head: LedgerHead): void;
  /** The newest head that this process has read. */
  seen(): LedgerHead;
  /** Called when the queue has run dry. */
  idle(): void;
}

export interface Sequencer {
  transact<T>(job: Job<T>, prefetch?: Prefetch): Promise<T>;
  transactFirst<T>(job: UrgentJob<T>): Promise<T>;
  /** The last committed head, or null when it is not certain what the store holds. */
  lastHead(): LedgerHead | null;
  /** Takes no more jobs, and resolves when all taken ones are answered. */
  drain(): Promise<void>;
  /** Why nothing more is written, or null. */
  halted(): string | null;
}

/** Runs of a batch that others' transactions thwart, and the longest pause before the first of them. Milliseconds. */
const MOST_CONFLICTS = 8;
const CONFLICT_PAUSE = 10;

export function createSequencer(options: SequencerOptions, start: LedgerHead): Sequencer {
  const { storage, log } = options;
  let queue: Pending[] = [];
  let running: Promise<void> | null = null;
  const preparations = createPreparations({
    refuse,
    queue(pending) {
      queue = behindUrgent(queue, pending);
      running ??= run();
    },
  });
  let lastHead: LedgerHead | null = start;
  /** The last head that was this process's own or was seen to go on from it. */
  let trusted: LedgerHead = start;
  let closed = false;
  let halted: string | null = null;

  async function run(): Promise<void> {
    for (;;) {
      await gather();
      if (queue.length === 0) break;
      const jobs = takeBatch(queue, options.maxBatch);
      queue = queue.slice(jobs.length);
      await commit(jobs);
    }
    running = null;
    options.idle();
  }

  /**
   * Lets in what is arriving: turns of the event loop, not a timer, for as long as each brings jobs.
   * A lone job waits for one turn. A sync costs as much as many decisions, so a fuller batch is sooner done.
   */
  async function gather(): Promise<void> {
    let seen = -1;
    while (queue.length > seen && queue.length < options.maxBatch) {
      seen = queue.length;
      await nextTurn();
    }
  }

  async function commit(jobs: Pending[]): Promise<void> {
    let live = jobs;
    let times = 0;
    let conflicts = 0;
    while (live.length > 0) {
      const result = await attempt(live);
      if (result === null) return;
      if (result instanceof NotPrepared) {
        if (await preparations.ofBatch(result, live, ++times)) continue;
        return;
      }
      if (result instanceof Unprepared) {
        if (!preparations.ofJob(result)) live = live.filter((pending) => pending !== result.pending);
        continue;
      }
      if (result instanceof StorageError) {
        if (++conflicts > MOST_CONFLICTS) return refuse(live, result);
        // Nobody has been answered, and nothing of it was kept.
        await setTimeout(Math.random() * CONFLICT_PAUSE * 2 ** conflicts);
        continue;
      }
      if (result instanceof Poisoned) {
        log.error("a job failed inside its batch; the batch runs again without it", { error: stackOf(result.cause) });
        result.pending.reject(result.cause);
        live = live.filter((pending) => pending !== result.pending);
        continue;
      }
      lastHead = result.head;
      trusted = result.head;
      for (const outcome of result.outcomes) {
        if ("refusal" in outcome) outcome.pending.reject(outcome.refusal);
        else outcome.pending.resolve(outcome.value);
      }
      if (result.entries.length > 0) announce(result);
      return;
    }
  }

  function refuse(live: readonly Pending[], error: unknown): void {
    const failure =
      error instanceof StorageError
        ? error
        : new StorageError("unavailable", "the batch could not be committed", { cause: error });
    log.error("the store refused a batch; its callers get no verdict", {
      kind: failure.kind,
      jobs: live.length,
      error: failure.message,
    });
    for (const pending of live) pending.reject(failure);
  }

  /** The callers have their answers; what fails here must not end the loop that the next ones wait for. */
  function announce({ entries, head }: BatchResult): void {
    try {
      options.committed(entries, head);
    } catch (error) {
      halted = `the committed head (size ${head.size}) could not be signed: ${error instanceof Error ? error.message : String(error)}; nothing more is written: stop the service and run an audit`;
      log.error(halted);
    }
  }

  /**
   * Adds to `live` what has queued up while it waited for the lock. Null: everybody was refused, because it is not known
   * whether the batch was committed or it certainly was not. StorageError: a conflict, and it may run again.
   */
  async function attempt(
    live: Pending[],
  ): Promise<BatchResult | Poisoned | Unprepared | NotPrepared | StorageError | null> {
    try {
      if (halted !== null) throw new StorageError("corrupt", halted);
      const checkpoint = options.unstoredCheckpoint();
      const result = await storage.write(async (tx) => {
        const before = await tx.head();
        await assertContinuity(tx, before);
        await tellClock(tx, before);
        await options.follow(tx, before);
        closeBatch(live);
        const context: BatchContext = {
          now: options.clock.now(),
          policies: live[0]?.urgent === true ? withoutPolicies : options.policies,
          confirm: options.confirm,
          agentFacts: options.agentFacts,
          stops: options.stops,
          outbox: options.outbox,
          jobMs: options.jobMs,
          entryFault: options.entryFault,
        };
        const done = await runBatch(tx, before, live, context);
        if (checkpoint !== null && done.entries.length > 0) await tx.putCheckpoint(checkpoint.size, checkpoint.note);
        return done;
      });
      const last = result.entries.at(-1);
      if (last !== undefined) options.clock.saw(last.created_at);
      if (checkpoint !== null && result.entries.length > 0) options.checkpointStored(checkpoint.size);
      return result;
    } catch (error) {
      if (error instanceof Poisoned || error instanceof Unprepared || error instanceof NotPrepared) return error;
      lastHead = null;
      if (error instanceof StorageError && error.kind === "conflict") return error;
      refuse(live, error);
      return null;
    }
  }

  /** The lock is had: who came while others held it need not wait for it once more. */
  function closeBatch(live: Pending[]): void {
    if (queue[0]?.urgent !== live[0]?.urgent) return;
    const more = takeBatch(queue, options.maxBatch - live.length);
    queue = queue.slice(more.length);
    live.push(...more);
  }

  /**
   * The head under the lock must be the one this process left, or extend it, and its right edge
   * must be that of its tree. Anything else means that the store was changed behind the ledger's
   * back: to go on would sign a second history, or decide by policies that no entry activated.
   */
  async function assertContinuity(tx: StorageReader, head: LedgerHead): Promise<void> {
    if (mayFollow(options.seen(), head) && (head.size === 0 || equalBytes(rootOfEdge(head.edge), head.root))) {
      if (lastHead !== null && sameHead(head, lastHead)) return;
      if (!(lastHead !== null && storage.exclusive) && (await goesOn(tx, trusted, head, options))) {
        trusted = head;
        return;
      }
    }
    halted = `the ledger's head (size ${head.size}) does not continue what this process committed or signed; nothing more is written: stop the service and run an audit`;
    log.error(halted);
    throw new StorageError("corrupt", halted);
  }

  /** Others' last entry may lie ahead of this process's clock. */
  async function tellClock(tx: StorageReader, head: LedgerHead): Promise<void> {
    if (head.size === 0 || (lastHead !== null && sameHead(head, lastHead))) return;
    const [last] = await tx.entries(head.size - 1, head.size);
    if (last !== undefined) options.clock.saw(last.created_at);
  }

  function take<T>(job: Pending["job"], urgent: boolean, prefetch?: Prefetch): Promise<T> {
    if (closed)
      return Promise.reject(
        new Refusal("SHUTTING_DOWN", "the service is stopping; send the request again to another process, or later"),
      );
    return new Promise<T>((resolve, reject) => {
      const pending: Pending = { job, urgent, prefetch, resolve: resolve as (value: unknown) => void, reject };
      if (urgent) queue = behindUrgent(queue, pending);
      else queue.push(pending);
      running ??= run();
    });
  }

  return {
    // A store in this process answers at once, so that prefetching would cost more than it saves.
    transact: (job, prefetch) => take(job, false, storage.exclusive ? undefined : prefetch),
    transactFirst: (job) => take(job, true),
    lastHead: () => lastHead,
    halted: () => halted,
    async drain() {
      closed = true;
      while (running !== null || preparations.waiting() > 0) await Promise.all([running, preparations.settled()]);
    },
  };
}

/** What cannot be loaded must not hold up a stop. An empty set allows nothing. */
const withoutPolicies: BatchContext["policies"] = (_tx, digest) =>
  Promise.resolve({ digest, compiled: emptyPolicySet(), source: null });

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
