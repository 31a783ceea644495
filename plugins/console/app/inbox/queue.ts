/**
 * The list of pending requests, which the service filters, sorts and returns page by page. The ledger's events update
 * the list without moving its rows: a settled request stays in its row and shows its outcome, and a new request that
 * belongs further up is held back until the person clicks a button.
 */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { request } from "../core/api.ts";
import { isOwnVote } from "./vote-availability.ts";
import { followQueue } from "./follow-queue.ts";
import {
  changeItem,
  EMPTY_QUEUE,
  hasFilter,
  isSameQuery,
  needsFullSearch,
  removeRows,
  type QueueItem,
  listItems,
  listMissingIds,
  listSettledIds,
  type ListQuery,
  markMissingAsSettled,
  storeAction,
  storeFirstPage,
  storeNextPage,
  storeFetchedAction,
  type QueueState,
  showHeldRows,
} from "./queue-state.ts";

const PAGE = 50;
const MAX_PAGE = 1000;
/** Minimum time between two reads that are triggered by events, however many events there are. Milliseconds. */
const READ_EVERY_MS = 2000;
/** Like `READ_EVERY_MS`, but for a list that the service has to search. Milliseconds. */
const SEARCH_EVERY_MS = 5000;

export interface Queue extends QueueState {
  live: { state: string; why: string };
  /** The open request, if no loaded page contains it. */
  apart: QueueItem | null;
  rows: readonly QueueItem[];
  heldRows: readonly QueueItem[];
  more(): Promise<void>;
  /** Loads all pages. Resolves to the requests of the list, or to null if a page cannot be read. */
  loadAll(): Promise<readonly QueueItem[] | null>;
  reload(): void;
  /** Updates a request after it was settled or a vote was recorded. */
  update(id: string, more: Partial<QueueItem>): void;
  showHeld(): void;
}

/**
 * Functions that read the list and single requests. At each call, they use the latest query and the latest open
 * request.
 */
interface QueueReads {
  reread(id: string, signal?: AbortSignal): Promise<void>;
  load(signal?: AbortSignal, isQuiet?: boolean): Promise<void>;
  /** Reads the next page. Resolves to false if it could not be read. */
  readNext(limit: number): Promise<boolean>;
  /** Loads all pages. Resolves to the requests of the list, or to null if a page cannot be read. */
  readAll(): Promise<readonly QueueItem[] | null>;
}

/** The values of the latest rendering, for asynchronous work that continues after a later rendering. */
interface Newest {
  state: QueueState;
  query: ListQuery;
  open: string | null;
}

function createQueueReads(
  newest: () => Newest,
  setState: (change: (old: QueueState) => QueueState) => void,
): QueueReads {
  let isLoadingMore = false;

  async function reread(id: string, signal?: AbortSignal): Promise<void> {
    try {
      const action = await request("GET /v1/actions/{id}", { path: [id], signal });
      setState((old) => storeFetchedAction(old, action, newest().open));
    } catch (error) {
      if (signal?.aborted) return;
      const missing = newest().open === id ? { id, error } : null;
      setState((old) =>
        old.items.has(id) ? changeItem(old, id, { error }) : missing === null ? old : { ...old, missing },
      );
    }
  }

  async function load(signal?: AbortSignal, isQuiet = false): Promise<void> {
    const { state, query: asked } = newest();
    const known = new Set(state.items.keys());
    const isSame = isSameQuery(state.query, asked);
    try {
      const limit = isSame ? Math.min(MAX_PAGE, Math.max(PAGE, state.order.length)) : PAGE;
      const page = await request("GET /v1/approvals", { query: { ...asked, limit }, signal });
      // The person changed the query during the read. A separate read loads the list for the new query.
      if (!isSameQuery(newest().query, asked)) return;
      if (hasFilter(asked)) {
        setState((old) => storeFirstPage(old, asked, page));
        if (isSame) for (const id of listMissingIds(page, newest().state)) void reread(id, signal);
      } else setState((old) => markMissingAsSettled(storeFirstPage(old, asked, page), known, page));
    } catch (error) {
      if (!signal?.aborted && !isQuiet) setState((old) => ({ ...old, loading: false, error }));
    }
  }

  async function readNext(limit: number): Promise<boolean> {
    const { cursor, query: shown } = newest().state;
    if (cursor === null || isLoadingMore) return false;
    isLoadingMore = true;
    try {
      const page = await request("GET /v1/approvals", { query: { ...shown, limit, cursor } });
      if (isSameQuery(shown, newest().state.query)) setState((old) => storeNextPage(old, page));
      return true;
    } catch (error) {
      setState((old) => ({ ...old, error }));
      return false;
    } finally {
      isLoadingMore = false;
    }
  }

  async function readAll(): Promise<readonly QueueItem[] | null> {
    const requestedQuery = newest().query;
    while (newest().state.cursor !== null) {
      // Wait for a read that scrolling has started.
      while (isLoadingMore) await new Promise((resolve) => setTimeout(resolve, 20));
      if (!(await readNext(MAX_PAGE)) || !isSameQuery(newest().query, requestedQuery)) return null;
      // Let the component render the page, so that `newest()` contains it.
      await new Promise((resolve) => setTimeout(resolve));
    }
    const { state } = newest();
    return listItems(state, state.order);
  }

  return { reread, load, readNext, readAll };
}

/** @param open id of the open request, whose token and votes are also read */
export function useQueue(open: string | null, query: ListQuery): Queue {
  const [state, setState] = useState(EMPTY_QUEUE);
  const [live, setLive] = useState({ state: "starting", why: "" });
  const newest = useRef<Newest>({ state, query, open });
  newest.current = { state, query, open };
  const { reread, load, readNext, readAll } = useMemo(() => createQueueReads(() => newest.current, setState), []);

  useEffect(
    () =>
      followQueue({
        load,
        reread,
        setLive,
        setState,
        isOpen: (id) => newest.current.open === id,
        readEvery: () => (needsFullSearch(newest.current.query) ? SEARCH_EVERY_MS : READ_EVERY_MS),
      }),
    [],
  );
  const isFirst = useRef(true);
  useEffect(() => {
    if (!isFirst.current) void load();
    isFirst.current = false;
  }, [JSON.stringify(query)]);
  // Removes a settled request the second time that the person opens another request. Until then its row shows the
  // outcome, and no row moves while the person reads or points.
  const settledBefore = useRef<Set<string>>(new Set());
  useEffect(() => {
    const left = new Set([...settledBefore.current].filter((id) => id !== open));
    settledBefore.current = listSettledIds(newest.current.state, isOwnVote);
    if (left.size > 0) setState((old) => removeRows(old, left));
  }, [open]);
  useEffect(() => {
    if (open === null || state.loading) return undefined;
    const over = new AbortController();
    void reread(open, over.signal);
    return () => over.abort();
  }, [open, state.loading]);

  const isRead = state.order.length === 0 && !state.loading && state.error === null;
  // All requests of the list were settled and have left it, so load the next pending requests.
  useEffect(() => {
    if (isRead && (state.total ?? 0) > 0) void load();
  }, [isRead, state.total]);

  return {
    ...state,
    live,
    apart: open !== null && !state.order.includes(open) ? (state.items.get(open) ?? null) : null,
    rows: listItems(state, state.order),
    heldRows: listItems(
      state,
      state.held.filter((id) => id !== open),
    ),
    more: async () => void (await readNext(PAGE)),
    loadAll: readAll,
    reload: () => void load(),
    update: (id, more) =>
      setState((old) => changeItem(more.action === undefined ? old : storeAction(old, more.action), id, more)),
    showHeld: () => setState(showHeldRows),
  };
}
