/** Waiting for what is to come about, with one bound for all: only a test that has failed waits so long. */

/** Far more than the busiest machine needs. */
export const BOUND_MS = 240_000;

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Looks until there is something. Throws with `otherwise` when there is nothing in the end. */
export async function eventually<T>(
  look: () => T | undefined | Promise<T | undefined>,
  otherwise: () => string,
  everyMs = 20,
): Promise<T> {
  for (const end = performance.now() + BOUND_MS; ;) {
    const found = await look();
    if (found !== undefined) return found;
    if (performance.now() > end) throw new Error(otherwise());
    await pause(everyMs);
  }
}

/** Looks until it holds. @param what for the error's message, such as "the fault shows" */
export async function until(
  what: string | (() => string),
  holds: () => boolean | Promise<boolean>,
  everyMs = 20,
): Promise<void> {
  await eventually(
    async () => ((await holds()) ? true : undefined),
    () => `it did not come about: ${typeof what === "string" ? what : what()}`,
    everyMs,
  );
}

/** What comes of it, or an error when nothing does in the end. */
export async function bounded<T>(what: string, work: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`it did not come about: ${what}`)), BOUND_MS);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
