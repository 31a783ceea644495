/** A job of a batch, and what becomes of it there. */
import type { Refusal } from "../../contract/errors.ts";
import type { Job, PreparationRequired, Prefetch } from "../../contract/ledger.ts";

export interface Pending {
  job: Job<unknown>;
  /** Goes before all that are not. */
  urgent: boolean;
  prefetch?: Prefetch | undefined;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

/** The first of the queue: urgent ones by themselves, because they are done without policies. */
export function takeBatch(queue: readonly Pending[], most: number): Pending[] {
  const urgent = queue[0]?.urgent === true;
  const end = queue.findIndex((pending) => pending.urgent !== urgent);
  return queue.slice(0, Math.min(end < 0 ? queue.length : end, most));
}

/** The queue with one more, before all that can wait. */
export function behindUrgent(queue: readonly Pending[], pending: Pending): Pending[] {
  const urgent = queue.filter((other) => other.urgent);
  return [...urgent, pending, ...queue.slice(urgent.length)];
}

export type Outcome = { pending: Pending; value: unknown } | { pending: Pending; refusal: Refusal };

/** A job failed after it had begun to write, or not by a Refusal: the batch is lost, the other jobs are not at fault. */
export class Poisoned extends Error {
  readonly pending: Pending;
  constructor(pending: Pending, cause: unknown) {
    super("a job failed inside its batch", { cause });
    this.pending = pending;
  }
}

/** A job, and not the batch, needs something that takes too long under the lock. */
export class Unprepared extends Error {
  readonly pending: Pending;
  readonly missing: PreparationRequired;
  constructor(pending: Pending, missing: PreparationRequired) {
    super(missing.message);
    this.pending = pending;
    this.missing = missing;
  }
}

/** The running job has had its time: it would hold the lock, and everybody behind it, for good. */
export class Late extends Error {}
