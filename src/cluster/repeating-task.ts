/** Runs a background task repeatedly until it is stopped, one run at a time. */

interface RepeatingTaskOptions {
  task(): Promise<unknown>;
  /** Delay from the end of one run to the start of the next. Milliseconds. */
  everyMs: number;
  /** Delay after a failed run. Default: `everyMs`. */
  afterFailureMs?: number;
  /** Called with the error of a failed run, except after `stop`. */
  onFailure(error: unknown): void;
}

export interface RepeatingTask {
  /** Starts the first run after `ms`. Default: immediately. */
  start(ms?: number): void;
  /** Runs the task now, or joins the current run. Never rejects. */
  run(): Promise<void>;
  /** Prevents more runs. Resolves when the current run has ended. */
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
