/**
 * Runs two processes of the service in one test process, on one store in memory. After each storage operation it
 * chooses which of the pending operations runs next. The same seed produces the same choices.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import {
  READER_METHODS,
  StorageError,
  WRITER_METHODS,
  type Storage,
  type StorageTransaction,
} from "../../src/contract/storage.ts";
import { createRandom } from "./random.ts";

/** After this number of event loop turns without a new operation, every process is considered blocked. */
const IDLE_TURNS = 6;
/**
 * Fault rates: one in `operation` storage operations fails, and one in `commit` commits loses its connection before or
 * after the commit.
 */
const FAULTS = { operation: 400, commit: 25 };

type AnyMethod = (...args: unknown[]) => Promise<unknown>;

export interface Interleaving {
  /** Returns the store as one process uses it. */
  process(name: string): Storage;
  /** Waits until this operation is chosen. Outside of `run` it returns at once. */
  step(name: string): Promise<void>;
  /** Calls `work`, interleaving its operations, and returns its result. Only one run can be active. */
  run<T>(seed: number, work: () => Promise<T>): Promise<T>;
  /** The operations of the latest run, in the order in which they ran. */
  readonly trace: readonly string[];
  /** Number of connections that the latest run lost. */
  readonly faults: number;
}

/** Wraps a store. @param store shared by the processes; it must be open, and is not closed */
export function interleave(store: Storage): Interleaving {
  let { random } = createRandom(0);
  const scheduled = new AsyncLocalStorage<true>();
  let trace: string[] = [];
  let waiting: { name: string; go(): void }[] = [];
  let isRunning = false;
  let arrivals = 0;
  let faults = 0;

  /**
   * Returns true if the current operation belongs to the active run. Timers that a run has set, such as the next
   * signature, can outlive it.
   */
  const isScheduled = (): boolean => isRunning && scheduled.getStore() !== undefined;

  async function step(name: string): Promise<void> {
    // Background work is not scheduled, because it starts at a time that no seed can repeat.
    if (!isScheduled()) return;
    arrivals++;
    await new Promise<void>((go) => waiting.push({ name, go }));
  }

  function lost(what: string): StorageError {
    faults++;
    trace.push(`lost: ${what}`);
    return new StorageError("unavailable", `the connection was lost (${what})`);
  }

  function transaction(name: string, tx: StorageTransaction): StorageTransaction {
    const members: Record<string, AnyMethod> = {};
    let doom: StorageError | null = null;
    for (const method of [...READER_METHODS, ...WRITER_METHODS])
      members[method] = async (...args) => {
        await step(`${name} ${method}`);
        if (isScheduled() && random(FAULTS.operation) === 0) doom ??= lost(`${name} ${method}`);
        if (doom !== null) throw doom;
        return (tx[method] as AnyMethod)(...args);
      };
    return members as unknown as StorageTransaction;
  }

  function process(name: string): Storage {
    const reads: Record<string, AnyMethod> = {};
    for (const method of READER_METHODS)
      reads[method] = async (...args) => {
        await step(`${name} reads ${method}`);
        return (store[method] as AnyMethod)(...args);
      };
    return {
      ...store,
      ...(reads as unknown as Pick<Storage, (typeof READER_METHODS)[number]>),
      exclusive: false,
      open: () => Promise.resolve(),
      close: () => Promise.resolve(),
      async write(work) {
        await step(`${name} asks for the lock`);
        let answerIsLost = false;
        const result = await store.write(async (tx) => {
          await step(`${name} has the lock`);
          const done = await work(transaction(name, tx));
          await step(`${name} commits`);
          const fate = isScheduled() ? random(FAULTS.commit) : -1;
          if (fate === 0) throw lost(`${name}, before the commit`);
          answerIsLost = fate === 1;
          return done;
        });
        await step(`${name} hears of the commit`);
        if (answerIsLost) throw lost(`${name}, after the commit`);
        return result;
      },
    };
  }

  async function settle(): Promise<void> {
    for (let idle = 0; idle < IDLE_TURNS;) {
      const before = arrivals;
      await new Promise((resolve) => setImmediate(resolve));
      idle = arrivals === before ? idle + 1 : 0;
    }
  }

  return {
    process,
    step,
    get trace() {
      return trace;
    },
    get faults() {
      return faults;
    },
    async run(seed, work) {
      ({ random } = createRandom(seed));
      trace = [];
      faults = 0;
      isRunning = true;
      let isOver = false;
      const result = scheduled.run(true, work).finally(() => (isOver = true));
      result.catch(() => undefined);
      while (!isOver) {
        await settle();
        const next = waiting[random(Math.max(1, waiting.length))];
        if (next === undefined) {
          // All processes wait for time to pass, such as a pause before a retry.
          await new Promise((resolve) => setTimeout(resolve, 1));
          continue;
        }
        waiting = waiting.filter((one) => one !== next);
        trace.push(next.name);
        next.go();
      }
      isRunning = false;
      const left = waiting;
      waiting = [];
      for (const { go } of left) go();
      return result;
    },
  };
}
