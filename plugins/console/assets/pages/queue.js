/** What waits, kept up to date by the ledger's events. What was settled while somebody looked stays, and says how. */
import { call, at, now, url } from "/console/api.js";
import { follow } from "/console/live.js";
import { who } from "/console/text.js";
import { useCallback, useEffect, useRef, useState } from "/console/ui.js";

const MOST = 1000;

/** @param {string | null} open id of the approval that is looked at: its token and votes are read too */
export function useQueue(open) {
  const [items, setItems] = useState(/** @type {Map<string, any>} */ (new Map()));
  const [state, setState] = useState({ loading: true, error: null, more: false });
  const [live, setLive] = useState({ state: "starting", why: "" });
  const known = useRef(items);
  known.current = items;

  const put = useCallback((id, change) => setItems((old) => new Map(old).set(id, change(old.get(id) ?? { action: null, outcome: null, full: false, error: null }))), []);
  const settle = useCallback((id, outcome) => setItems((old) => (old.get(id) === undefined || old.get(id).outcome?.mine ? old : new Map(old).set(id, { ...old.get(id), outcome }))), []);

  const load = useCallback(async (signal) => {
    try {
      const { actions, next_cursor } = await call(url("/v1/actions", { status: "pending_approval", limit: MOST }), { signal });
      setItems((old) => {
        const next = new Map();
        const still = new Set(actions.map((action) => action.id));
        // What the list has no more was settled while the stream was down: how is read below.
        for (const [id, item] of old) if (item.outcome !== null || !still.has(id)) next.set(id, item);
        for (const action of actions) next.set(action.id, { outcome: null, error: null, ...old.get(action.id), action: { ...old.get(action.id)?.action, ...action } });
        return next;
      });
      setState({ loading: false, error: null, more: next_cursor !== null });
      const still = new Set(actions.map((action) => action.id));
      for (const [id, item] of known.current) if (item.outcome === null && !still.has(id)) await reread(id, signal);
    } catch (error) {
      if (!signal?.aborted) setState((old) => ({ ...old, loading: false, error }));
    }
  }, []);

  const reread = useCallback(async (id, signal) => {
    try {
      const action = await call(`/v1/actions/${at(id)}`, signal === undefined ? {} : { signal });
      put(id, (item) => ({ ...item, action, full: true, error: null, outcome: item.outcome ?? outcomeOf(action) }));
    } catch (error) {
      if (!signal?.aborted && known.current.has(id)) put(id, (item) => ({ ...item, error }));
    }
  }, []);

  useEffect(() => {
    const over = new AbortController();
    let timer;
    load(over.signal);
    follow({
      filters: { type: "decision,approval" },
      signal: over.signal,
      onEvent({ type, entry }) {
        const id = /** @type {string} */ (entry.action_id);
        if (type === "decision" ? entry.status === "pending_approval" : known.current.has(id)) reread(id, over.signal);
      },
      onState(next, why) {
        setLive({ state: next, why });
        // What happened before the stream began is in the list alone.
        if (next === "live") load(over.signal);
        // A key without events:read looks every few seconds instead.
        if (next === "refused" && timer === undefined) timer = setInterval(() => load(over.signal), 5000);
      },
    });
    return () => {
      clearInterval(timer);
      over.abort();
    };
  }, []);

  const there = open !== null && items.has(open);
  useEffect(() => {
    if (!there) return undefined;
    const over = new AbortController();
    reread(open, over.signal);
    return () => over.abort();
  }, [open, there]);

  const sorted = [...items.values()].filter((item) => item.action !== null).sort((a, b) => Date.parse(a.action.expires_at) - Date.parse(b.action.expires_at) || (a.action.id < b.action.id ? -1 : 1));
  return {
    ...state,
    live,
    items: sorted,
    settle,
    refuse: (id, error) => put(id, (item) => ({ ...item, error })),
    reload: () => load(undefined),
    clear: () => setItems((old) => new Map([...old].filter(([, item]) => item.outcome === null && Date.parse(item.action.expires_at) > now()))),
  };
}

/** Null while it is still open. @param {any} action */
export function outcomeOf(action) {
  if (action.status === "pending_approval") return null;
  const last = action.approvals.at(-1);
  if (action.status === "expired") return { kind: "busy", text: "It expired: nobody decided in time. The agent has to ask again." };
  if (action.status === "cancelled") return { kind: "busy", text: "Whoever asked has withdrawn it." };
  if (action.status === "denied") return { kind: "bad", text: `${nameOf(last)} denied it${reasonOf(last)}` };
  return { kind: "good", text: `${nameOf(last)} approved it${reasonOf(last)}` };
}

function nameOf(vote) {
  return vote === undefined ? "Somebody" : who(vote.approver);
}

function reasonOf(vote) {
  return vote?.reason ? `: “${vote.reason}”` : ".";
}
