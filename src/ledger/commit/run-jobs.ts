/** Runs the jobs of a batch in order, and collects their outcomes. */
import { Refusal } from "../../contract/errors.ts";
import { PreparationRequired, type LedgerTransaction } from "../../contract/ledger.ts";
import { StorageError } from "../../contract/storage.ts";
import { JobTimeoutError, JobFailedError, JobNotPreparedError, type JobOutcome, type QueuedJob } from "./job.ts";

/** A write that the job does not await. */
export interface PendingWrite {
  write: Promise<boolean>;
  /** Names the row that the write changes. */
  row: string;
}

/** The batch that the jobs write to. */
interface JobBatch {
  /** Returns the transaction that jobs use; null if it must be created. */
  currentView(): LedgerTransaction | null;
  makeView(): Promise<LedgerTransaction>;
  watchHead(): () => boolean;
  /** Whether the running job has written or recorded anything. */
  changed: boolean;
  /** The writes of all jobs so far that the jobs did not await. */
  readonly expected: readonly PendingWrite[];
}

interface JobsDone {
  outcomes: JobOutcome[];
  /** Whether any job has written anything. */
  touched: boolean;
  /**
   * Awaits the writes that jobs did not await, and verifies that each of them changed its row. Rejects with
   * JobFailedError or JobNotPreparedError for the job whose write failed. Call this before the commit.
   */
  awaitWrites(): Promise<void>;
}

/** @param late a promise that rejects with JobTimeoutError when the batch exceeds its time limit */
export async function runJobs(batch: JobBatch, jobs: readonly QueuedJob[], late: Promise<never>): Promise<JobsDone> {
  const outcomes: JobOutcome[] = [];
  const expecting: ExpectedWrite[] = [];
  let touched = false;
  /** Awaits the writes that jobs did not await, because a failed or hanging write makes later jobs fail, too. */
  const awaitWrites = async (): Promise<void> => {
    for (const expected of expecting) await assertChanged(expected, late);
  };
  /** A view reads behind the writes of earlier jobs, so the failed or hanging write of one makes it fail, too. */
  const makeView = async (): Promise<LedgerTransaction> => {
    try {
      return await Promise.race([batch.makeView(), late]);
    } catch (error) {
      await awaitWrites();
      throw error;
    }
  };
  for (const pending of jobs) {
    const view = batch.currentView() ?? (await makeView());
    const unrecorded = batch.watchHead();
    const before = batch.expected.length;
    const expect = (): void => {
      for (const write of batch.expected.slice(before)) expecting.push({ pending, ...write });
    };
    if (pending.timing !== null) pending.timing.startedAt = performance.now();
    try {
      outcomes.push({ pending, value: await Promise.race([pending.job(view), late]).finally(expect) });
      if (unrecorded()) throw new TypeError("a job that increases the epoch must record an entry");
    } catch (error) {
      if (error instanceof PreparationRequired && !batch.changed) {
        // Continue with the other jobs. If each unprepared job made the batch run again, the batch would hold the lock
        // for long.
        outcomes.push({ pending, missing: error });
        continue;
      }
      if (!(error instanceof Refusal) || batch.changed) {
        await awaitWrites();
        throw batchError(pending, error) ?? new JobFailedError(pending, error);
      }
      outcomes.push({ pending, refusal: error });
    }
    if (pending.timing !== null) pending.timing.decidedAt = performance.now();
    touched ||= batch.changed;
    batch.changed = false;
  }
  return { outcomes, touched, awaitWrites };
}

interface ExpectedWrite extends PendingWrite {
  /** The job that sent the write. */
  pending: QueuedJob;
}

async function assertChanged({ pending, write, row }: ExpectedWrite, late: Promise<never>): Promise<void> {
  let changed: boolean;
  try {
    changed = await Promise.race([write, late]);
  } catch (error) {
    throw batchError(pending, error) ?? new JobFailedError(pending, error);
  }
  if (!changed)
    throw new JobFailedError(pending, new Error(`${row} did not change although the ledger's lock was held`));
}

/** Returns the error that ends the batch; null if only the job fails. */
function batchError(pending: QueuedJob, error: unknown): Error | null {
  if (error instanceof PreparationRequired) return new JobNotPreparedError(pending, error);
  if (error instanceof JobTimeoutError)
    return new JobFailedError(pending, new StorageError("unavailable", "a job of the ledger did not end in time"));
  // A value that cannot be stored is the fault of the job. Other storage errors affect the whole batch.
  return error instanceof StorageError && error.kind !== "invalid" ? error : null;
}
