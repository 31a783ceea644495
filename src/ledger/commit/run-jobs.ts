/** Runs the jobs of a batch in order, and collects their outcomes. */
import { Refusal } from "../../contract/errors.ts";
import { PreparationRequired, type LedgerTransaction } from "../../contract/ledger.ts";
import { StorageError } from "../../contract/storage.ts";
import { Late, Poisoned, Unprepared, type Outcome, type Pending } from "./job.ts";

/** A write whose response the job does not await. */
export type Expected = Promise<boolean>;

/** What the jobs write into. */
export interface JobBatch {
  /** Returns the transaction that jobs see; null if it must be created. */
  currentView(): LedgerTransaction | null;
  makeView(): Promise<LedgerTransaction>;
  watchHead(): () => boolean;
  /** Set by the first write or entry of the running job. */
  changed: boolean;
  /** Those of all jobs so far. */
  readonly expected: readonly Expected[];
}

export interface JobsDone {
  outcomes: Outcome[];
  /** True if any job has written something. */
  touched: boolean;
  /**
   * Waits for the writes that jobs did not await, and verifies that each changed its row. Rejects with Poisoned or Unprepared
   * for the job whose write failed. Must be awaited before the commit.
   */
  blameWrites(): Promise<void>;
}

/** `late` rejects with Late. */
export async function runJobs(batch: JobBatch, jobs: readonly Pending[], late: Promise<never>): Promise<JobsDone> {
  const outcomes: Outcome[] = [];
  const expecting: { pending: Pending; write: Expected }[] = [];
  let touched = false;
  /** A failed or hanging write also fails all later statements, so it is blamed first. */
  const blameWrites = async (): Promise<void> => {
    for (const { pending, write } of expecting) await cameTrue(pending, write, late);
  };
  for (const pending of jobs) {
    const view = batch.currentView() ?? (await batch.makeView());
    const unrecorded = batch.watchHead();
    const before = batch.expected.length;
    const expect = (): void => {
      for (const write of batch.expected.slice(before)) expecting.push({ pending, write });
    };
    try {
      outcomes.push({ pending, value: await Promise.race([pending.job(view), late]).finally(expect) });
      if (unrecorded()) throw new TypeError("a job that changes the policy set, a key or an agent must record it");
    } catch (error) {
      if (error instanceof StorageError || error instanceof Late) await blameWrites();
      const fault = faultOf(pending, error);
      if (fault !== null) throw fault;
      if (!(error instanceof Refusal) || batch.changed) throw new Poisoned(pending, error);
      outcomes.push({ pending, refusal: error });
    }
    touched ||= batch.changed;
    batch.changed = false;
  }
  return { outcomes, touched, blameWrites };
}

async function cameTrue(pending: Pending, write: Expected, late: Promise<never>): Promise<void> {
  let changed: boolean;
  try {
    changed = await Promise.race([write, late]);
  } catch (error) {
    throw faultOf(pending, error) ?? new Poisoned(pending, error);
  }
  if (!changed) throw new Poisoned(pending, new Error("a row did not change although the ledger's lock was held"));
}

/** Returns the error that ends the batch; null if only the job fails. */
function faultOf(pending: Pending, error: unknown): Error | null {
  if (error instanceof PreparationRequired) return new Unprepared(pending, error);
  if (error instanceof Late)
    return new Poisoned(pending, new StorageError("unavailable", "a job of the ledger did not end in time"));
  // A value that cannot be stored is the job's fault. Other storage errors affect the whole batch.
  return error instanceof StorageError && error.kind !== "invalid" ? error : null;
}
