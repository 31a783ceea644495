/** What a batch or one of its jobs needs before it can run under the lock. */
import type { PreparationRequired } from "../../contract/ledger.ts";
import type { Pending, Unprepared } from "./job.ts";

/** Each is for something else, such as the sets that other processes make active one after another. */
const MOST = 20;

export interface Preparations {
  /** Prepares what the whole batch needs. False: everybody was refused. */
  ofBatch(missing: PreparationRequired, live: readonly Pending[], times: number): Promise<boolean>;
  /**
   * Prepares what one job needs. False: it has left the batch, was refused or comes again with a later one; nobody else
   * waits for it.
   */
  ofJob(unprepared: Unprepared): boolean;
  /** Jobs that have left their batch to be prepared. */
  waiting(): number;
  settled(): Promise<unknown>;
}

export function createPreparations(options: {
  refuse(live: readonly Pending[], error: unknown): void;
  /** Takes a job that has been prepared. */
  queue(pending: Pending): void;
}): Preparations {
  const preparing = new Set<Promise<void>>();
  /** How often each job has been prepared. */
  const times = new WeakMap<Pending, number>();

  function prepare(missing: PreparationRequired, count: number): void | Promise<void> {
    if (count > MOST) throw new Error(`${missing.message}, and was ${count} times in a row`);
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
        (error: unknown) => options.refuse([pending], error),
      );
      preparing.add(done);
      void done.then(() => preparing.delete(done));
      return false;
    },
    waiting: () => preparing.size,
    settled: () => Promise.all(preparing),
  };
}
