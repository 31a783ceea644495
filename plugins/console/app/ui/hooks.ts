/** Hooks that pages share. */
import { signal } from "@preact/signals";
import { useCallback, useEffect, useLayoutEffect, useState } from "preact/hooks";
import { ApiError, serviceNow, retryWhenReachable } from "../core/api.ts";

export interface LoadState<T> {
  data: T | null;
  error: unknown;
  loading: boolean;
  reload(): void;
  set(change: (data: T | null) => T | null): void;
}

/** Opens a form of the page if the address ends in `?form=true`. Removes this ending, so that the same link works again. */
export function useAddressedForm(query: URLSearchParams, open: () => void): void {
  const isAsked = query.has("form");
  useEffect(() => {
    if (!isAsked) return;
    location.replace(location.hash.split("?", 1)[0] ?? "");
    open();
  }, [isAsked]);
}

/**
 * Loads data when the component is rendered for the first time and when `deps` change. If the service was unreachable,
 * loads again when it is reachable.
 */
export function useLoad<T>(load: (signal: AbortSignal) => Promise<T>, deps: readonly unknown[]): LoadState<T> {
  const [state, setState] = useState<{ data: T | null; error: unknown; loading: boolean }>({
    data: null,
    error: null,
    loading: true,
  });
  const [round, setRound] = useState(0);
  const isUnreachable = state.error instanceof ApiError && state.error.status === 0;
  useEffect(() => (isUnreachable ? retryWhenReachable(() => setRound((n) => n + 1)) : undefined), [isUnreachable]);
  // Not after painting, so that the request is sent as early as possible.
  useLayoutEffect(() => {
    const over = new AbortController();
    setState((old) => ({ ...old, loading: true }));
    load(over.signal).then(
      (data) => over.signal.aborted || setState({ data, error: null, loading: false }),
      (error: unknown) => over.signal.aborted || setState((old) => ({ ...old, error, loading: false })),
    );
    return () => over.abort();
  }, [...deps, round]);
  return {
    ...state,
    reload: useCallback(() => setRound((n) => n + 1), []),
    set: useCallback(
      (change: (data: T | null) => T | null) => setState((old) => ({ ...old, data: change(old.data) })),
      [],
    ),
  };
}

/** The service's time in milliseconds. Updated every second while it has a subscriber. */
export const currentTimeMs = signal(serviceNow(), {
  watched() {
    this.value = serviceNow();
    timer = setInterval(() => (this.value = serviceNow()), 1000);
  },
  unwatched() {
    clearInterval(timer);
  },
});
let timer: ReturnType<typeof setInterval> | undefined;

/**
 * Returns the service's time, and redraws the component every `every` milliseconds. A countdown uses `currentTimeMs`
 * instead, so that only the countdown is redrawn.
 */
export function useNow(every = 1000): number {
  const [time, setTime] = useState(serviceNow());
  useEffect(() => {
    const interval = setInterval(() => setTime(serviceNow()), every);
    return () => clearInterval(interval);
  }, [every]);
  return time;
}
