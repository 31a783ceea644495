/** Settles as the promise does, but rejects with the signal's reason once the signal is aborted. */
export function rejectOnAbort<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason as Error);
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    // Attached also if the signal is aborted already, because a later rejection would be unhandled.
    void promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}
