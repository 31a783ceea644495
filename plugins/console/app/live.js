/** Follows the ledger: every follower of this tab over one source, and the source over one stream for all tabs. */
import { call, suspect, url } from "./api.js";
import { key, signOut } from "./session.js";
import { listen } from "./source.js";

/** Of one look back. */
const PAGE = 1000;
/** Entries that come together are one look. */
const SOON = 200;

/** @typedef {import("./stream.js").Event} Event @typedef {import("./stream.js").State} State */

/** @type {Set<{ event(event: Event): void, state(state: State): void }>} */
const followers = new Set();
/** @type {{ key: string, over: AbortController, state: State | null } | null} */
let source = null;

/**
 * Follows until the signal aborts. Nothing is missed, nothing comes twice, in order.
 * @param {object} options
 * @param {{ type?: string, agent_id?: string, tool?: string, action_id?: string }} [options.filters] as the API takes them
 * @param {number} [options.after] sequence; without it the stream begins now
 * @param {AbortSignal} options.signal
 * @param {(event: Event) => void} options.onEvent
 * @param {(state: "live" | "waiting" | "refused", why: string) => void} options.onState "live" is said again after each reconnection
 */
export function follow({ filters = {}, after, signal, onEvent, onState }) {
  const fits = matcher(filters);
  let last = after;
  // What came before it was asked for, and what only the service can filter, is read in pages.
  let behind = after !== undefined;
  let looking = false;
  const catchUp = async () => {
    if (looking) return;
    looking = true;
    try {
      while (behind && !signal.aborted) {
        behind = false;
        for (let caught = false; !caught && !signal.aborted;) {
          const page = await call(url("/v1/events/page", { ...filters, after: last, limit: PAGE }), { signal });
          for (const event of page.events) onEvent(event);
          last = page.next_after;
          caught = page.next_after >= page.head;
        }
      }
    } catch (error) {
      behind = true;
      if (!signal.aborted) onState("waiting", error instanceof Error ? error.message : "");
    } finally {
      looking = false;
    }
  };
  const follower = {
    event(event) {
      if (last !== undefined && event.seq <= last) return;
      if (behind || looking || filters.tool) {
        behind = true;
        setTimeout(catchUp, SOON);
        return;
      }
      last = event.seq;
      if (fits(event)) onEvent(event);
    },
    state(state) {
      if (state.state === "starting") return;
      if (state.state === "live") {
        last ??= state.last;
        if (behind) void catchUp();
      }
      onState(state.state, state.why);
    },
  };
  followers.add(follower);
  signal.addEventListener("abort", () => (followers.delete(follower), settle()), { once: true });
  settle();
  if (source?.state) follower.state(source.state);
}

/** The source runs while somebody follows, with the key that is signed in. */
function settle() {
  const wanted = followers.size === 0 ? null : key();
  if (source !== null && source.key !== wanted) {
    const { over } = source;
    source = null;
    over.abort();
  }
  if (wanted === null || source !== null) return;
  const newSource = { key: wanted, over: new AbortController(), state: null };
  source = newSource;
  void listen(wanted, newSource.over.signal, {
    onEvent(event) {
      if (source !== newSource) return;
      if (newSource.state !== null) newSource.state = { ...newSource.state, last: event.seq };
      for (const follower of followers) follower.event(event);
    },
    onState(state) {
      if (source !== newSource) return;
      newSource.state = state;
      if (state.state === "waiting") void suspect();
      if (state.status === 401) return signOut(state.why);
      for (const follower of followers) follower.state(state);
    },
  });
}

/** The API's filters, as far as an entry tells. @param {{ type?: string, agent_id?: string, action_id?: string }} filters */
function matcher({ type, agent_id, action_id }) {
  const types = type ? new Set(type.split(",")) : null;
  return (event) =>
    (types === null || types.has(event.type)) &&
    (!agent_id || event.entry.agent_id === agent_id) &&
    (!action_id || event.entry.action_id === action_id);
}
