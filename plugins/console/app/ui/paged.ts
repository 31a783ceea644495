import { useState } from "preact/hooks";
import { useLoad } from "./hooks.ts";

export interface PagedRows<T> {
  /** Null until the first page is loaded. */
  rows: readonly T[] | null;
  error: unknown;
  hasMore: boolean;
  isBusy: boolean;
  /** Loads the next page. */
  more(): void;
  /** Loads the first page again. */
  reload(): void;
}

interface OnePage<T> {
  rows: readonly T[];
  next_cursor: string | null;
}

/** Loads a list page by page. Starts again when `deps` change. */
export function usePaged<T>(
  load: (cursor: string | undefined, signal: AbortSignal | undefined) => Promise<OnePage<T>>,
  deps: readonly unknown[],
): PagedRows<T> {
  const { data, error, loading, reload, set } = useLoad((signal) => load(undefined, signal), deps);
  const [isFetching, setFetching] = useState(false);
  const [moreError, setMoreError] = useState<unknown>(null);
  const more = async (): Promise<void> => {
    const cursor = data?.next_cursor;
    if (cursor === null || cursor === undefined || isFetching) return;
    setFetching(true);
    setMoreError(null);
    try {
      const next = await load(cursor, undefined);
      // If the list was loaded again during this read, the list's cursor differs, and this page does not belong to the
      // list.
      set((now) => (now?.next_cursor === cursor ? { ...next, rows: [...now.rows, ...next.rows] } : now));
    } catch (problem) {
      setMoreError(problem);
    } finally {
      setFetching(false);
    }
  };
  return {
    rows: data?.rows ?? null,
    error: error ?? moreError,
    hasMore: (data?.next_cursor ?? null) !== null,
    isBusy: loading || isFetching,
    more: () => void more(),
    reload,
  };
}
