/** Background work that is done again and again until it is stopped. One run at a time. */

export interface RepeatingTaskOptions {
  task(): Promise<unknown>;
  /** From the end of one run to the next. Milliseconds. */
  everyMs: number;
  /** After a run that failed; `everyMs` without it. */
  afterFailureMs?: number;
  /** Hears of a run that rejected. Not of what fails because it was stopped. */
  onFailure(error: unknown): void;
}

export interface RepeatingTask {
  /** Begins. The first run comes after `ms`, at once without it. */
  start(ms?: number): void;
  /** A run now, or the one that is under way. Never rejects. */
  run(): Promise<void>;
  /** Resolves when the run under way has ended; none follows. */
  stop(): Promise<void>;
}

export function createRepeatingTask({
  task,
  everyMs,
  afterFailureMs = everyMs,
  onFailure: failed,
}: RepeatingTaskOptions): RepeatingTask {
  let timer: ReturnType<typeof setTimeout> | null = null;
  let running: Promise<void> | null = null;
  let begun = false;
  let stopped = false;

  function plan(ms: number): void {
    if (!begun || stopped) return;
    if (timer !== null) clearTimeout(timer);
    timer = setTimeout(() => void run(), ms);
    timer.unref?.();
  }

  async function once(): Promise<void> {
    try {
      await task();
      plan(everyMs);
    } catch (error) {
      if (stopped) return;
      failed(error);
      plan(afterFailureMs);
    }
  }

  function run(): Promise<void> {
    running ??= once().finally(() => (running = null));
    return running;
  }

  return {
    start(ms = 0) {
      begun = true;
      plan(ms);
    },
    run,
    async stop() {
      stopped = true;
      if (timer !== null) clearTimeout(timer);
      await running;
    },
  };
}
