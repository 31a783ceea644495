/**
 * What waits, by its end, page by page. It is kept up to date by the ledger's events, and nothing that is being read is
 * moved by them: what was settled stays where it is and says how, what would come in between is held until it is asked for.
 */
import { call, at, now, url } from "../api.js";
import { follow } from "../live.js";
import { useCallback, useEffect, useRef, useState } from "../ui.js";
import { outcomeOf } from "./outcome.js";

const PAGE = 50;
const MOST = 1000;
/** Arrivals that come together; more of them than `ONE_BY_ONE` are read as a page. */
const SOON = 150;
const ONE_BY_ONE = 2;
/** The least time between two looks at what has changed: many decisions a second are not many requests. */
const LOOK_EVERY = 2000;
/** Settled actions that are read after one list; the next look reads others. */
const MOST_SETTLED = 10;
const EVERY = 5000;
/** Who waits changes without an event. */
const WAITS_EVERY = 15_000;

/**
 * @typedef {{ action: any, outcome: any, full: boolean, error: unknown, past?: boolean }} Item
 * @typedef {{ items: Map<string, Item>, order: string[], held: string[], cursor: string | null, total: number | null, loading: boolean, error: unknown }} State
 */

/** @type {State} */
const NOTHING = { items: new Map(), order: [], held: [], cursor: null, total: null, loading: true, error: null };

const endOf = (action) => Date.parse(action.expires_at);
/** The order of the service: by end, then by decision. Ids grow. */
const later = (a, b) => endOf(a) - endOf(b) || (a.id < b.id ? -1 : 1);

/** @param {State} state @param {any} action */
function put(state, action, more = {}) {
  const old = state.items.get(action.id) ?? { action: null, outcome: null, full: false, error: null };
  const items = new Map(state.items).set(action.id, { ...old, ...more, action: { ...old.action, ...action } });
  return { ...state, items };
}

/** A pending action that is new here: behind what is shown, or held. @param {State} state @param {any} action @returns {State} */
function place(state, action) {
  const isListed = state.order.includes(action.id) || state.held.includes(action.id);
  if (isListed) return put(state, action);
  const last = state.items.get(state.order.at(-1) ?? "")?.action;
  if (last === undefined || later(action, last) > 0) {
    // It stands on a page that was not asked for.
    if (last !== undefined && state.cursor !== null) return state;
    return { ...put(state, action), order: [...state.order, action.id] };
  }
  return { ...put(state, action), held: [...state.held, action.id] };
}

/** @param {State} state @param {{ actions: any[], total: number, next_cursor: string | null }} page @returns {State} */
function firstPage(state, { actions, total, next_cursor }) {
  let next = { ...state, loading: false, error: null, total };
  if (state.order.length === 0) {
    for (const action of actions) next = put(next, action);
    return { ...next, order: actions.map(({ id }) => id), held: [], cursor: next_cursor };
  }
  if (next_cursor === null) next.cursor = null;
  for (const action of actions) next = place(next, action);
  return next;
}

/** @param {string | null} open id of the approval that is looked at: its token and votes are read too */
export function useQueue(open) {
  const [state, setState] = useState(NOTHING);
  const [live, setLive] = useState({ state: "starting", why: "" });
  const stateRef = useRef(state);
  stateRef.current = state;
  const wanted = useRef(open);
  wanted.current = open;

  const reread = useCallback(async (id, signal) => {
    try {
      const action = await call(`/v1/actions/${at(id)}`, { signal });
      const outcome = outcomeOf(action);
      setState((old) => {
        const before = old.items.get(id)?.outcome ?? null;
        const next = outcome === null && before === null ? place(old, action) : old;
        const shown = next.items.has(id) || wanted.current === id;
        if (!shown) return next;
        const was = old.items.get(id);
        // A link to one that was settled before anybody looked; what is settled under one's eyes stays.
        const past = was?.past ?? (was === undefined && outcome !== null);
        return put(next, action, { full: true, error: null, outcome: before ?? outcome, past });
      });
    } catch (error) {
      if (signal?.aborted) return;
      setState((old) => (old.items.has(id) || wanted.current === id ? put(old, { id }, { error }) : old));
    }
  }, []);

  /** Resolves to whether something that was settled is still to be read. */
  const load = useCallback(async (signal, { quiet = false } = {}) => {
    try {
      const limit = Math.min(MOST, Math.max(PAGE, stateRef.current.order.length));
      const page = await call(url("/v1/approvals", { limit }), { signal });
      const shown = stateRef.current;
      setState((old) => firstPage(old, page));
      // What the list has no more was settled while the stream was down: how is read.
      const still = new Set(page.actions.map((action) => action.id));
      const last = page.next_cursor === null ? null : page.actions.at(-1);
      let settled = 0;
      for (const [id, item] of shown.items) {
        if (item.outcome !== null || item.action?.expires_at === undefined || still.has(id)) continue;
        if (last !== null && later(item.action, last) >= 0) continue;
        if (settled === MOST_SETTLED) return true;
        settled += 1;
        await reread(id, signal);
      }
    } catch (error) {
      if (!signal?.aborted && !quiet) setState((old) => ({ ...old, loading: false, error }));
    }
    return false;
  }, []);

  useEffect(() => {
    const over = new AbortController();
    const { signal } = over;
    const arrived = new Set();
    let timer;
    let soon;
    let looked = -Infinity;
    const look = async () => {
      soon = undefined;
      looked = performance.now();
      const ids = [...arrived];
      arrived.clear();
      if (ids.length === 0 || ids.length > ONE_BY_ONE) return refresh();
      await Promise.all(ids.map((id) => reread(id, signal)));
      const { total } = await call(url("/v1/approvals", { limit: 1 }), { signal });
      setState((old) => ({ ...old, total }));
    };
    const arrange = () =>
      (soon ??= setTimeout(
        () => look().catch(() => undefined),
        Math.max(SOON, looked + LOOK_EVERY - performance.now()),
      ));
    const refresh = async (options = {}) => {
      const isMore = await load(signal, options);
      if (isMore && !signal.aborted) arrange();
    };
    const waits = setInterval(() => document.hidden || void refresh({ quiet: true }), WAITS_EVERY);
    void refresh();
    follow({
      filters: { type: "decision,approval" },
      signal,
      onEvent({ type, entry }) {
        if (type === "decision" ? entry.status !== "pending_approval" : entry.action_id === undefined) return;
        arrived.add(entry.action_id);
        // What could not be read now is read when the stream or the service is there again.
        arrange();
      },
      onState(next, why) {
        setLive({ state: next, why });
        // What happened before the stream began is in the list alone.
        if (next === "live") void refresh();
        // A key without events:read looks every few seconds instead.
        if (next === "refused" && timer === undefined) timer = setInterval(() => void refresh(), EVERY);
      },
    });
    return () => {
      clearInterval(timer);
      clearInterval(waits);
      clearTimeout(soon);
      over.abort();
    };
  }, []);

  useEffect(() => {
    if (open === null || state.loading) return undefined;
    const over = new AbortController();
    void reread(open, over.signal);
    return () => over.abort();
  }, [open, state.loading]);

  const more = async () => {
    try {
      const page = await call(url("/v1/approvals", { limit: PAGE, cursor: state.cursor }));
      setState((old) => {
        let next = { ...old, error: null, total: page.total, cursor: page.next_cursor };
        for (const action of page.actions) {
          next = put(next, action);
          const there = next.order.includes(action.id) || next.held.includes(action.id);
          if (!there) next.order = [...next.order, action.id];
        }
        return next;
      });
    } catch (error) {
      setState((old) => ({ ...old, error }));
    }
  };
  const isRead = state.order.length === 0 && !state.loading && state.error === null;
  // All that was shown is settled and cleared: what is pending comes next.
  useEffect(() => {
    if (isRead && (state.total ?? 0) > 0) void load(undefined);
  }, [isRead, state.total]);
  // One that a link led to, and that no page which was read has.
  const apart = open !== null && !state.order.includes(open) ? (state.items.get(open) ?? null) : null;
  const rows = state.order.map((id) => /** @type {Item} */ (state.items.get(id)));
  return {
    ...state,
    live,
    apart,
    items: rows,
    held: state.held.filter((id) => id !== open).map((id) => /** @type {Item} */ (state.items.get(id))),
    more,
    reload: () => load(undefined),
    /** A verdict was given: what became of it. */
    settle: (id, outcome, action) =>
      setState((old) => {
        const item = old.items.get(id);
        return item === undefined || item.outcome?.mine ? old : put(old, action ?? { id }, { outcome, error: null });
      }),
    refuse: (id, error) => setState((old) => put(old, { id }, { error })),
    show: () =>
      setState((old) => {
        const all = [...old.order, ...old.held].sort((a, b) =>
          later(old.items.get(a)?.action, old.items.get(b)?.action),
        );
        return { ...old, order: all, held: [] };
      }),
    clear: () =>
      setState((old) => ({
        ...old,
        order: old.order.filter((id) => {
          const { outcome, action } = /** @type {Item} */ (old.items.get(id));
          return outcome === null && endOf(action) > now();
        }),
      })),
  };
}
