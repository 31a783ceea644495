/** Makes preparations outside the lock for a batch or one of its jobs, such as compiling a policy set. */
import { Refusal } from "../../contract/errors.ts";
import type { PreparationRequired } from "../../contract/ledger.ts";
import type { QueuedJob, JobNotPreparedError } from "./job.ts";

/**
 * Maximum number of preparations for one batch or one job. Several are needed if other processes activate policy
 * sets during a preparation.
 */
const MAX_PREPARATIONS = 20;

export interface Preparations {
  /**
   * Makes a preparation that all jobs of a batch need. Resolves to false if it failed and the callers of the jobs got
   * an error.
   */
  ofBatch(missing: PreparationRequired, live: readonly QueuedJob[], times: number): Promise<boolean>;
  /**
   * Makes the preparation of one job. Returns true if the job can stay in its batch, and false if it was refused or
   * will be queued again.
   */
  ofJob(unprepared: JobNotPreparedError): boolean;
  /** Returns the number of jobs that are being prepared outside a batch. */
  waiting(): number;
  settled(): Promise<unknown>;
}

export function createPreparations(options: {
  refuse(live: readonly QueuedJob[], error: unknown): void;
  /** Queues a prepared job. */
  queue(pending: QueuedJob): void;
}): Preparations {
  const preparing = new Set<Promise<void>>();
  /** Number of preparations of each job. */
  const times = new WeakMap<QueuedJob, number>();

  function prepare(missing: PreparationRequired, count: number): void | Promise<void> {
    if (count > MAX_PREPARATIONS) throw new Error(`${missing.message}, ${count} times in a row`);
    return missing.prepare();
  }

  return {
    async ofBatch(missing, live, count) {
      try {
        await prepare(missing, count);
        return true;
      } catch (error) {
        options.refuse(live, error);
        return false;
      }
    },
    ofJob({ pending, missing }) {
      const count = (times.get(pending) ?? 0) + 1;
      times.set(pending, count);
      let ready: void | Promise<void>;
      try {
        ready = prepare(missing, count);
      } catch (error) {
        options.refuse([pending], error);
        return false;
      }
      if (ready === undefined) return true;
      const done = ready.then(
        () => options.queue(pending),
        (error: unknown) => (error instanceof Refusal ? pending.reject(error) : options.refuse([pending], error)),
      );
      preparing.add(done);
      void done.then(() => preparing.delete(done));
      return false;
    },
    waiting: () => preparing.size,
    settled: () => Promise.all(preparing),
  };
}
