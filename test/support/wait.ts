/** Waits for conditions, with one timeout for all waits. Only a failing test reaches it. */

/** Timeout of every wait. Far more than the slowest machine needs. */
export const BOUND_MS = 240_000;

/** Longest interval of polling, unless a test sets a longer one. */
const LONG_INTERVAL_MS = 100;

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * Polls until `look` returns a value other than undefined, and returns it. Throws with the message `otherwise()` on
 * timeout. The interval grows with the time waited, because each look can be a request to a service.
 */
export async function eventually<T>(
  look: () => T | undefined | Promise<T | undefined>,
  otherwise: () => string,
  everyMs = 20,
): Promise<T> {
  for (const begun = performance.now(); ;) {
    const found = await look();
    if (found !== undefined) return found;
    const waited = performance.now() - begun;
    if (waited > BOUND_MS) throw new Error(otherwise());
    await pause(Math.max(everyMs, Math.min(waited / 10, LONG_INTERVAL_MS)));
  }
}

/**
 * Polls until `holds` returns true. Throws on timeout. @param what the condition for the error message, such as "the
 * fault is recorded"
 */
export async function until(
  what: string | (() => string),
  holds: () => boolean | Promise<boolean>,
  everyMs = 20,
): Promise<void> {
  await eventually(
    async () => ((await holds()) ? true : undefined),
    () => `not true after ${BOUND_MS / 1000} s: ${typeof what === "string" ? what : what()}`,
    everyMs,
  );
}

/** Returns the result of `work`. Throws if it does not settle before the timeout. */
export async function withTimeout<T>(what: string, work: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not settled after ${BOUND_MS / 1000} s: ${what}`)), BOUND_MS);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
