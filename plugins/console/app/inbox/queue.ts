/**
 * The list of pending requests, filtered and sorted by the service, page by page. The ledger's events keep it up to date, and none of them moves
 * what is being read: a settled request stays where it is and shows how it ended, and a new one that belongs further up is
 * held until the person asks for it.
 */
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { Action, Api } from "../core/api-types.ts";
import { now, request } from "../core/api.ts";
import { follow } from "../core/live.ts";
import { outcomeOf, type Outcome, reviewOutcome } from "./outcome.tsx";

const PAGE = 50;
const MAX_PAGE = 1000;
/** Events within this time cause one rendering. Milliseconds. */
const COLLECT_MS = 150;
/** Minimum time between two reads that events cause, however many events there are. Milliseconds. */
const READ_EVERY_MS = 2000;
/** The same for a list that the service has to search. Milliseconds. */
const SEARCH_EVERY_MS = 5000;
/** Requests that have left a filtered list and are read individually, to find out why. */
const MAX_REREADS = 20;
/** Poll interval without events. Milliseconds. */
const POLL_MS = 5000;
/** Poll interval for waiting agents, which change without an event. Milliseconds. */
const WAITING_EVERY_MS = 15_000;

/** How the list is filtered and sorted: parameters of `GET /v1/approvals`. */
export type ListQuery = Omit<NonNullable<Api["GET /v1/approvals"]["query"]>, "limit" | "cursor">;

/** Whether the list leaves pending requests out. */
export function isNarrowed(query: ListQuery): boolean {
  return Object.entries(query).some(([name, value]) => name !== "sort" && value !== undefined);
}

export interface Item {
  action: Action;
  outcome: Outcome | null;
  /** Whether the request was read individually: only then votes and token are complete. */
  isFull: boolean;
  error: unknown;
  /** Whether a link led to the request after it was settled. */
  isPast?: boolean;
}

export interface QueueState {
  /** The query that the rows answer. */
  query: ListQuery;
  items: ReadonlyMap<string, Item>;
  order: readonly string[];
  held: readonly string[];
  cursor: string | null;
  /** Null if it is not known yet, or if more are pending than the service counts for this query. */
  total: number | null;
  loading: boolean;
  error: unknown;
  /** Why the open request could not be read. */
  missing: { id: string; error: unknown } | null;
}

const EMPTY: QueueState = {
  query: {},
  items: new Map(),
  order: [],
  held: [],
  cursor: null,
  total: null,
  loading: true,
  error: null,
  missing: null,
};

const deadlineOf = (action: Action): number => Date.parse(action.expires_at ?? "");
const RISKS: readonly (string | null)[] = ["low", "medium", "high", "critical"];
const byId = (a: Action, b: Action): number => (a.id < b.id ? -1 : 1);
/** By deadline, then by id, which grows. */
const byDeadline = (a: Action, b: Action): number => deadlineOf(a) - deadlineOf(b) || byId(a, b);
/** The service's orders. */
const ORDERS = {
  deadline: byDeadline,
  oldest: byId,
  newest: (a: Action, b: Action): number => byId(b, a),
  risk: (a: Action, b: Action): number => RISKS.indexOf(b.risk_level) - RISKS.indexOf(a.risk_level) || byDeadline(a, b),
} as const;
const orderOf = ({ query }: QueueState) => ORDERS[query.sort ?? "deadline"];

function put(state: QueueState, action: Action, more: Partial<Item> = {}): QueueState {
  const old = state.items.get(action.id) ?? { action, outcome: null, isFull: false, error: null };
  const items = new Map(state.items).set(action.id, { ...old, ...more, action: { ...old.action, ...action } });
  return { ...state, items };
}

function change(state: QueueState, id: string, more: Partial<Item>): QueueState {
  const old = state.items.get(id);
  return old === undefined ? state : { ...state, items: new Map(state.items).set(id, { ...old, ...more }) };
}

/** Adds a pending request: after the ones that are listed, or to those that are held. */
function place(state: QueueState, action: Action): QueueState {
  if (state.order.includes(action.id) || state.held.includes(action.id)) return put(state, action);
  const last = state.items.get(state.order.at(-1) ?? "")?.action;
  if (last === undefined || orderOf(state)(action, last) > 0) {
    // The request is on a page that was not loaded.
    if (last !== undefined && state.cursor !== null) return state;
    return { ...put(state, action), order: [...state.order, action.id] };
  }
  return { ...put(state, action), held: [...state.held, action.id] };
}

interface Page {
  actions: readonly Action[];
  total: number | null;
  next_cursor: string | null;
}

function putFirstPage(state: QueueState, query: ListQuery, { actions, total, next_cursor }: Page): QueueState {
  let next: QueueState = { ...state, query, loading: false, error: null, total };
  if (state.order.length === 0 || !isSameQuery(state.query, query)) {
    for (const action of actions) next = put(next, action);
    return { ...next, order: actions.map(({ id }) => id), held: [], cursor: next_cursor };
  }
  if (next_cursor === null) next = { ...next, cursor: null };
  for (const action of actions) next = place(next, action);
  return next;
}

const isSameQuery = (a: ListQuery, b: ListQuery): boolean => JSON.stringify(a) === JSON.stringify(b);

function putNextPage(state: QueueState, { actions, total, next_cursor }: Page): QueueState {
  let next: QueueState = { ...state, error: null, total, cursor: next_cursor };
  for (const action of actions) {
    next = put(next, action);
    if (!next.order.includes(action.id) && !next.held.includes(action.id))
      next = { ...next, order: [...next.order, action.id] };
  }
  return next;
}

export interface Queue extends QueueState {
  live: { state: string; why: string };
  /** The open request, if no loaded page has it. */
  apart: Item | null;
  rows: readonly Item[];
  heldRows: readonly Item[];
  more(): Promise<void>;
  /** Loads all pages. Resolves to the requests of the list, or to null if one page cannot be read. */
  loadAll(): Promise<readonly Item[] | null>;
  reload(): void;
  /** Records how a request ended, or that a vote was recorded. */
  update(id: string, more: Partial<Item>): void;
  showHeld(): void;
  clearSettled(): void;
}

/** @param open id of the open request: its token and votes are read, too */
export function useQueue(open: string | null, query: ListQuery): Queue {
  const [state, setState] = useState(EMPTY);
  const queryRef = useRef(query);
  queryRef.current = query;
  const [live, setLive] = useState({ state: "starting", why: "" });
  const stateRef = useRef(state);
  stateRef.current = state;
  const openRef = useRef(open);
  openRef.current = open;
  const isLoadingMore = useRef(false);

  const reread = useCallback(async (id: string, signal?: AbortSignal): Promise<void> => {
    try {
      const action = await request("GET /v1/actions/{id}", { path: [id], signal });
      setState((old) => putRead(old, action, openRef.current));
    } catch (error) {
      if (signal?.aborted) return;
      setState((old) =>
        old.items.has(id)
          ? change(old, id, { error })
          : openRef.current === id
            ? { ...old, missing: { id, error } }
            : old,
      );
    }
  }, []);

  const load = useCallback(async (signal?: AbortSignal, isQuiet = false): Promise<void> => {
    const { items, order, query: shown } = stateRef.current;
    const known = new Set(items.keys());
    const asked = queryRef.current;
    try {
      const limit = isSameQuery(shown, asked) ? Math.min(MAX_PAGE, Math.max(PAGE, order.length)) : PAGE;
      const page = await request("GET /v1/approvals", { query: { ...asked, limit }, signal });
      // The person changed the query meanwhile, which has its own read.
      if (!isSameQuery(queryRef.current, asked)) return;
      if (isNarrowed(asked)) {
        setState((old) => putFirstPage(old, asked, page));
        if (isSameQuery(shown, asked)) for (const id of absentFrom(page, stateRef.current)) void reread(id, signal);
      } else setState((old) => markSettled(putFirstPage(old, asked, page), known, page));
    } catch (error) {
      if (!signal?.aborted && !isQuiet) setState((old) => ({ ...old, loading: false, error }));
    }
  }, []);

  useEffect(
    () =>
      followQueue({
        load,
        reread,
        setLive,
        setState,
        isOpen: (id) => openRef.current === id,
        readEvery: () => (isSearched(queryRef.current) ? SEARCH_EVERY_MS : READ_EVERY_MS),
      }),
    [],
  );
  const isFirst = useRef(true);
  useEffect(() => {
    if (!isFirst.current) void load();
    isFirst.current = false;
  }, [JSON.stringify(query)]);
  useEffect(() => {
    if (open === null || state.loading) return undefined;
    const over = new AbortController();
    void reread(open, over.signal);
    return () => over.abort();
  }, [open, state.loading]);

  const isRead = state.order.length === 0 && !state.loading && state.error === null;
  // All listed requests are settled and cleared: load the next pending ones.
  useEffect(() => {
    if (isRead && (state.total ?? 0) > 0) void load();
  }, [isRead, state.total]);

  /** Reads the next page. Returns false if it was not read. */
  const readNext = async (limit: number): Promise<boolean> => {
    const { cursor, query: shown } = stateRef.current;
    if (cursor === null || isLoadingMore.current) return false;
    isLoadingMore.current = true;
    try {
      const page = await request("GET /v1/approvals", { query: { ...shown, limit, cursor } });
      if (isSameQuery(shown, stateRef.current.query)) setState((old) => putNextPage(old, page));
      return true;
    } catch (error) {
      setState((old) => ({ ...old, error }));
      return false;
    } finally {
      isLoadingMore.current = false;
    }
  };
  const itemsOf = (ids: readonly string[]): Item[] =>
    ids.map((id) => state.items.get(id)).filter((item) => item !== undefined);
  return {
    ...state,
    live,
    apart: open !== null && !state.order.includes(open) ? (state.items.get(open) ?? null) : null,
    rows: itemsOf(state.order),
    heldRows: itemsOf(state.held.filter((id) => id !== open)),
    async more() {
      await readNext(PAGE);
    },
    async loadAll() {
      const asked = queryRef.current;
      while (stateRef.current.cursor !== null) {
        // A read that scrolling started.
        while (isLoadingMore.current) await new Promise((resolve) => setTimeout(resolve, 20));
        if (!(await readNext(MAX_PAGE)) || !isSameQuery(queryRef.current, asked)) return null;
        // The next rendering has the page.
        await new Promise((resolve) => setTimeout(resolve));
      }
      return stateRef.current.order.map((id) => stateRef.current.items.get(id)).filter((item) => item !== undefined);
    },
    reload: () => void load(),
    update: (id, more) => setState((old) => change(more.action === undefined ? old : put(old, more.action), id, more)),
    showHeld: () =>
      setState((old) => {
        const order = [...old.order, ...old.held].sort((a, b) => {
          const [first, second] = [old.items.get(a), old.items.get(b)];
          return first === undefined || second === undefined ? 0 : orderOf(old)(first.action, second.action);
        });
        return { ...old, order, held: [] };
      }),
    clearSettled: () =>
      setState((old) => ({
        ...old,
        order: old.order.filter((id) => {
          const item = old.items.get(id);
          return item !== undefined && item.outcome === null && deadlineOf(item.action) > now();
        }),
      })),
  };
}

/** Stores a request that was read individually. */
function putRead(state: QueueState, action: Action, open: string | null): QueueState {
  const { id } = action;
  const outcome = outcomeOf(action);
  const known = state.items.get(id);
  const mine = known?.outcome?.isMine === true ? known.outcome : null;
  // A filtered list has only what the service found.
  const next = outcome === null && !isNarrowed(state.query) ? place(state, action) : state;
  if (!next.items.has(id) && open !== id) return next;
  const isPast = known?.isPast ?? (known === undefined && outcome !== null);
  return { ...put(next, action, { isFull: true, error: null, outcome: mine ?? outcome, isPast }), missing: null };
}

/** Marks requests that were pending before `page` was read and are not on it. The stream was down when they were settled. */
function markSettled(state: QueueState, known: ReadonlySet<string>, page: Page): QueueState {
  const remaining = new Set(page.actions.map(({ id }) => id));
  const last = page.next_cursor === null ? undefined : page.actions.at(-1);
  let next = state;
  for (const [id, { action, outcome }] of state.items) {
    if (outcome !== null || !known.has(id) || remaining.has(id)) continue;
    if (last !== undefined && orderOf(state)(action, last) >= 0) continue;
    next = change(next, id, { outcome: { kind: "busy", text: "It is no longer pending." } });
  }
  return next;
}

/** Returns the listed requests that a filtered page lacks: they are settled, or no longer pass the filter. */
function absentFrom(page: Page, { order, items, query }: QueueState): string[] {
  const remaining = new Set(page.actions.map(({ id }) => id));
  const last = page.next_cursor === null ? undefined : page.actions.at(-1);
  const isAbsent = (id: string): boolean => {
    const item = items.get(id);
    if (item === undefined || item.outcome !== null || item.isFull || remaining.has(id)) return false;
    return last === undefined || ORDERS[query.sort ?? "deadline"](item.action, last) < 0;
  };
  return order.filter(isAbsent).slice(0, MAX_REREADS);
}

/** Whether the service reads all pending requests to answer the query. */
const isSearched = (query: ListQuery): boolean => isNarrowed(query) || (query.sort ?? "deadline") !== "deadline";

/** Returns how a request ended, from the ledger's entry; null if it is pending. */
function outcomeOfEntry(entry: Record<string, unknown>): Outcome | null {
  const { status, verdict, reviewer, by, comment } = entry as {
    status?: string;
    verdict?: string;
    reviewer?: string;
    by?: { principal?: string } | null;
    comment?: string | null;
  };
  if (status === undefined || status === "pending_approval") return null;
  if (status === "expired") return { kind: "busy", text: "It expired before it was settled." };
  if (status === "cancelled") return { kind: "busy", text: "The agent cancelled it." };
  if (reviewer !== undefined) return reviewOutcome(status === "denied" ? reviewer : null, comment);
  if (verdict !== "approve" && verdict !== "deny") return { kind: "busy", text: "It is no longer pending." };
  const vote = { by: by?.principal, reason: comment };
  if (status === "denied") return { kind: "bad", text: "denied it", ...vote };
  return { kind: "good", text: "approved it", ...vote };
}

interface Following {
  load(signal?: AbortSignal, isQuiet?: boolean): Promise<void>;
  reread(id: string, signal?: AbortSignal): Promise<void>;
  setLive(live: { state: string; why: string }): void;
  setState(change: (old: QueueState) => QueueState): void;
  isOpen(id: string): boolean;
  /** Returns the minimum time between two reads that events cause. Milliseconds. */
  readEvery(): number;
}

/** Keeps the queue up to date. Returns a function that ends it. */
function followQueue({ load, reread, setLive, setState, isOpen, readEvery }: Following): () => void {
  const over = new AbortController();
  const { signal } = over;
  const settled = new Map<string, Outcome>();
  let poll: ReturnType<typeof setInterval> | undefined;
  let soon: ReturnType<typeof setTimeout> | undefined;
  let next: ReturnType<typeof setTimeout> | undefined;
  let readAt = -Infinity;
  /** Apply immediately what the entries themselves contain. */
  const applySettled = (): void => {
    soon = undefined;
    const outcomes = new Map(settled);
    settled.clear();
    setState((old) => {
      let state = old;
      for (const [id, outcome] of outcomes)
        if (state.items.get(id)?.outcome === null) state = change(state, id, { outcome });
      return state;
    });
    for (const id of outcomes.keys()) if (isOpen(id)) void reread(id, signal);
  };
  const read = (): void => {
    next ??= setTimeout(
      () => {
        next = undefined;
        readAt = performance.now();
        void load(signal, true);
      },
      Math.max(COLLECT_MS, readAt + readEvery() - performance.now()),
    );
  };
  const waiting = setInterval(() => document.hidden || void load(signal, true), WAITING_EVERY_MS);
  void load(signal);
  follow({
    filters: { type: "decision,approval,question,review" },
    signal,
    onEvent({ type, entry }) {
      const id = entry["action_id"];
      if (typeof id !== "string" || (type === "decision" && entry["status"] !== "pending_approval")) return;
      const outcome = type === "approval" || type === "review" ? outcomeOfEntry(entry) : null;
      if (outcome !== null) {
        settled.set(id, outcome);
        soon ??= setTimeout(applySettled, COLLECT_MS);
      } else if (isOpen(id)) void reread(id, signal);
      read();
    },
    onState(state, why) {
      setLive({ state, why });
      // Events before the stream's start are in the list only.
      if (state === "live") void load(signal);
      if (state === "refused") poll ??= setInterval(() => void load(signal), POLL_MS);
    },
  });
  return () => {
    clearInterval(poll);
    clearInterval(waiting);
    clearTimeout(soon);
    clearTimeout(next);
    over.abort();
  };
}
