/** Keeps the list of pending requests up to date with the ledger's events. */
import { followLiveEvents } from "../core/live-events.ts";
import { type RequestOutcome, reviewOutcome } from "./outcome.tsx";
import { changeItem, type QueueState } from "./queue-state.ts";

/** Events that arrive within this time are rendered together. Milliseconds. */
const COLLECT_MS = 150;
/** Poll interval if the event stream is refused. Milliseconds. */
const POLL_MS = 5000;
/** Minimum time from the end of a read to the next read. Milliseconds. */
const READ_EVERY_MS = 2000;
/** The same, as a multiple of the time that the read took: the service reads all pending requests for it. */
const READ_SHARE = 10;
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
}

/** Keeps the queue up to date. Returns a function that stops this. */
export function followQueue({ load, reread, setLive, setState, isOpen }: Following): () => void {
  const over = new AbortController();
  const { signal } = over;
  const settled = new Map<string, RequestOutcome>();
  let poll: ReturnType<typeof setInterval> | undefined;
  let soon: ReturnType<typeof setTimeout> | undefined;
  let next: ReturnType<typeof setTimeout> | undefined;
  let nextAt = -Infinity;
  let isReading = false;
  let isBehind = false;
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
  const readNow = async (isQuiet: boolean): Promise<void> => {
    [isReading, isBehind] = [true, false];
    const from = performance.now();
    await load(signal, isQuiet);
    const end = performance.now();
    nextAt = end + Math.max(READ_EVERY_MS, READ_SHARE * (end - from));
    isReading = false;
    if (isBehind) read();
  };
  const read = (): void => {
    isBehind = true;
    if (isReading || signal.aborted) return;
    next ??= setTimeout(
      () => {
        next = undefined;
        void readNow(true);
      },
      Math.max(COLLECT_MS, nextAt - performance.now()),
    );
  };
  const waiting = setInterval(() => document.hidden || read(), WAITING_EVERY_MS);
  void readNow(false);
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
      if (state === "live") read();
      if (state === "refused") poll ??= setInterval(() => isReading || void readNow(false), POLL_MS);
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
