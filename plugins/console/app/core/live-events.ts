/** Follows the ledger: all followers of this tab share one source, and all tabs share one stream. */
import { request, checkReachability } from "./api.ts";
import { currentCredential, signOutAfterRefusal } from "./session.ts";
import { listenToEvents } from "./event-source.ts";
import type { LedgerEvent, StreamState } from "./stream.ts";

export type { LedgerEvent } from "./stream.ts";

const PAGE = 1000;
/** Entries that arrive within this time are read together. Milliseconds. */
const COLLECT_MS = 200;

/** Filters of the API's event list. */
interface EventFilters {
  type?: string;
  agent_id?: string;
  tool?: string;
  action_id?: string;
}

interface FollowOptions {
  filters?: EventFilters;
  /** Delivers events after this sequence number. If absent, only new events are delivered. */
  after?: number;
  signal: AbortSignal;
  onEvent(event: LedgerEvent): void;
  /** Called when the state of the stream changes. Reports `live` again after each reconnection. */
  onState(state: "live" | "waiting" | "refused", why: string): void;
}

interface Follower {
  event(event: LedgerEvent): void;
  state(state: StreamState): void;
}

const followers = new Set<Follower>();
interface Source {
  key: string;
  over: AbortController;
  state: StreamState | null;
}

let source: Source | null = null;

/** Delivers each event exactly once and in order until the signal aborts. */
export function followLiveEvents({ filters = {}, after, signal, onEvent, onState }: FollowOptions): void {
  const fits = matcherOf(filters);
  let last = after;
  // True while events must be read in pages: events from before the start of the stream, and events for filters that
  // only the service can apply.
  let isBehind = after !== undefined;
  let isReading = false;
  const catchUp = async (): Promise<void> => {
    if (isReading) return;
    isReading = true;
    try {
      while (isBehind && !signal.aborted) {
        isBehind = false;
        for (let isDone = false; !isDone && !signal.aborted;) {
          const query = { ...filters, after: last, limit: PAGE };
          const page = await request("GET /v1/events/page", { query, signal });
          for (const event of page.events) onEvent(event);
          last = page.next_after;
          isDone = page.next_after >= page.head;
        }
      }
    } catch (error) {
      isBehind = true;
      if (!signal.aborted) onState("waiting", error instanceof Error ? error.message : "");
    } finally {
      isReading = false;
    }
  };
  const follower: Follower = {
    event(event) {
      if (last !== undefined && event.seq <= last) return;
      if (isBehind || isReading || filters.tool) {
        isBehind = true;
        setTimeout(() => void catchUp(), COLLECT_MS);
        return;
      }
      last = event.seq;
      if (fits(event)) onEvent(event);
    },
    state(state) {
      if (state.state === "starting") return;
      if (state.state === "live") {
        last ??= state.last;
        if (isBehind) void catchUp();
      }
      onState(state.state, state.why);
    },
  };
  followers.add(follower);
  signal.addEventListener("abort", () => (followers.delete(follower), settle()), { once: true });
  settle();
  if (source?.state) follower.state(source.state);
}

/**
 * Starts the source with the signed-in credential if there are followers. Stops it if there are none, or if the
 * credential has changed.
 */
function settle(): void {
  const streamCredential = followers.size === 0 ? null : currentCredential();
  if (source !== null && source.key !== streamCredential) {
    const { over } = source;
    source = null;
    over.abort();
  }
  if (streamCredential === null || source !== null) return;
  const newSource: Source = { key: streamCredential, over: new AbortController(), state: null };
  source = newSource;
  void listenToEvents(streamCredential, newSource.over.signal, {
    onEvent(event) {
      if (source !== newSource) return;
      if (newSource.state !== null) newSource.state = { ...newSource.state, last: event.seq };
      for (const follower of followers) follower.event(event);
    },
    onState(state) {
      if (source !== newSource) return;
      newSource.state = state;
      if (state.state === "waiting") void checkReachability();
      if (state.status === 401) return signOutAfterRefusal(state.why);
      for (const follower of followers) follower.state(state);
    },
  });
}

/**
 * Returns a function that tests whether an event matches the filters. Omits the filter for tools, because not every
 * entry of an action contains the tool.
 */
function matcherOf({ type, agent_id, action_id }: EventFilters): (event: LedgerEvent) => boolean {
  const types = type ? new Set(type.split(",")) : null;
  return (event) =>
    (types === null || types.has(event.type)) &&
    (!agent_id || event.entry["agent_id"] === agent_id) &&
    (!action_id || event.entry["action_id"] === action_id);
}
