/** Keeps the list of pending requests up to date with the ledger's events. */
import { followLiveEvents } from "../core/live-events.ts";
import { type RequestOutcome, reviewOutcome } from "./outcome.tsx";
import { changeItem, type QueueState } from "./queue-state.ts";

/** Events that arrive within this time are rendered together. Milliseconds. */
const COLLECT_MS = 150;
/** Poll interval if the event stream is refused. Milliseconds. */
const POLL_MS = 5000;
/** Poll interval that updates which agents are waiting, because no event reports it. Milliseconds. */
const WAITING_EVERY_MS = 15_000;

/** Returns the outcome of a request, from a ledger entry; null if the request is pending. */
function outcomeOfEntry(entry: Record<string, unknown>): RequestOutcome | null {
  const { status, verdict, reviewer, by, comment } = entry as {
    status?: string;
    verdict?: string;
    reviewer?: string;
    by?: { principal?: string } | null;
    comment?: string | null;
  };
  if (status === undefined || status === "pending_approval") return null;
  if (status === "expired") return { kind: "busy", text: "It expired before it was settled." };
  if (status === "cancelled") {
    const principal = by?.principal;
    const text = principal === undefined ? "It was cancelled" : "cancelled it";
    return { kind: "busy", text, by: principal, reason: comment };
  }
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
  /** Returns the minimum time between two reads that are triggered by events. Milliseconds. */
  readEvery(): number;
}

/** Keeps the queue up to date. Returns a function that stops this. */
export function followQueue({ load, reread, setLive, setState, isOpen, readEvery }: Following): () => void {
  const over = new AbortController();
  const { signal } = over;
  const settled = new Map<string, RequestOutcome>();
  let poll: ReturnType<typeof setInterval> | undefined;
  let soon: ReturnType<typeof setTimeout> | undefined;
  let next: ReturnType<typeof setTimeout> | undefined;
  let readAt = -Infinity;
  /** Applies the outcomes that arrived entries contain, without reading the requests. */
  const applySettled = (): void => {
    soon = undefined;
    const outcomes = new Map(settled);
    settled.clear();
    setState((old) => {
      let state = old;
      for (const [id, outcome] of outcomes)
        if (state.items.get(id)?.outcome === null) state = changeItem(state, id, { outcome });
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
  followLiveEvents({
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
      // The stream does not deliver events from before its start, so read the list.
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
