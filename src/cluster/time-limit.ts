/** Thrown when a time limit ends. The work continues. */
export class TimeLimitError extends Error {}

/** Ends the wait for a promise after a time limit. Rejects with TimeLimitError. */
export async function withTimeLimit<T>(promise: Promise<T>, ms: number, message: string): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new TimeLimitError(message)), Math.max(0, ms));
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
