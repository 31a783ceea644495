/** A job that waits for a batch, and the errors that remove a job from its batch. */
import type { Refusal } from "../../contract/errors.ts";
import type { Job, PreparationRequired, Prefetch } from "../../contract/ledger.ts";
import type { RequestTrace } from "../../contract/tracer.ts";

export interface QueuedJob {
  job: Job<unknown>;
  /** Whether the job runs before non-urgent jobs. */
  urgent: boolean;
  prefetch?: Prefetch | undefined;
  /** Null if the job's request is not traced. */
  timing: JobTiming | null;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

/** The times of `performance.now()` at which a traced job passed each stage, in the last run of its batch. */
interface JobTiming {
  trace: RequestTrace;
  queuedAt: number;
  startedAt: number;
  decidedAt: number;
}

export function startTiming(trace: RequestTrace | null): JobTiming | null {
  if (trace === null) return null;
  const now = performance.now();
  return { trace, queuedAt: now, startedAt: now, decidedAt: now };
}

/** Adds the stages of a job to its trace. Call it after the commit. */
export function reportTiming({ trace, queuedAt, startedAt, decidedAt }: JobTiming): void {
  trace.addStage("queue", queuedAt, startedAt);
  trace.addStage("decide", startedAt, decidedAt);
  trace.addStage("commit", decidedAt, performance.now());
}

/** Returns the jobs of the next batch. Urgent jobs get a separate batch, because they run without policies. */
export function selectBatch(queue: readonly QueuedJob[], most: number): QueuedJob[] {
  const urgent = queue[0]?.urgent === true;
  const end = queue.findIndex((pending) => pending.urgent !== urgent);
  return queue.slice(0, Math.min(end < 0 ? queue.length : end, most));
}

/** Returns the queue with a job inserted after the urgent jobs. */
export function insertAfterUrgent(queue: readonly QueuedJob[], pending: QueuedJob): QueuedJob[] {
  const urgent = queue.filter((other) => other.urgent);
  return [...urgent, pending, ...queue.slice(urgent.length)];
}

export type JobOutcome =
  | { pending: QueuedJob; value: unknown }
  | { pending: QueuedJob; refusal: Refusal }
  /** The job wrote nothing, and runs again after its preparation. */
  | { pending: QueuedJob; missing: PreparationRequired };

/**
 * Thrown if a job failed with an error other than Refusal, or after its first write. The batch is rolled back and runs
 * again without this job.
 */
export class JobFailedError extends Error {
  readonly pending: QueuedJob;
  constructor(pending: QueuedJob, cause: unknown) {
    super("a job failed within its batch", { cause });
    this.pending = pending;
  }
}

/** Thrown if a job that has already written needs preparation too slow to do under the lock. */
export class JobNotPreparedError extends Error {
  readonly pending: QueuedJob;
  readonly missing: PreparationRequired;
  constructor(pending: QueuedJob, missing: PreparationRequired) {
    super(missing.message);
    this.pending = pending;
    this.missing = missing;
  }
}

/**
 * Thrown if a batch exceeds its time limit. The batch runs again without the job that was running, which would block
 * all other jobs.
 */
export class JobTimeoutError extends Error {}
