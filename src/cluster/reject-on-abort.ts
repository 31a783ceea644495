/** Returns a promise that settles like `promise`, but rejects with the signal's reason once the signal is aborted. */
export function rejectOnAbort<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason as Error);
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    // Attach the handlers even if the signal is already aborted, because a later rejection would be unhandled.
    void promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}
