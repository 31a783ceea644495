/**
 * Follows the requests that wait for approval. Reads the service's list again whenever an event may have changed it.
 */
import { setTimeout as delay } from "node:timers/promises";
import {
  AssentError,
  ServiceUnavailable,
  type ActionRecord,
  type Assent,
} from "../../../../clients/typescript/index.ts";

/** Minimum time between two reads of the list, however many events there are. Milliseconds. */
const READ_EVERY_MS = 1000;
/** Interval of reads without events, because a deadline passes without an event. Milliseconds. */
const POLL_MS = 15_000;
/** Interval of reads while the service cannot be reached. Milliseconds. */
const RETRY_MS = 2000;
const PAGE_SIZE = 100;

export interface PendingQuery {
  /** `mine` restricts the list to requests that the caller can approve now. */
  view?: "mine" | undefined;
  agent_id?: string | undefined;
  tool?: string | undefined;
}

export interface PendingChanges {
  /** New requests, in the service's order. */
  added: readonly ActionRecord[];
  /**
   * Requests that are no longer in the list, in their current state. They are settled, or still pending if this caller
   * has voted or if more urgent requests fill the first page. A request that this caller can no longer see has the
   * state that it had when it was last in the list.
   */
  removed: readonly ActionRecord[];
  /** Number of additional requests beyond the first page; null if the service does not count them. */
  more: number | null;
}

/**
 * Yields the first list, then every change. Ends when the signal aborts.
 * @param onStatus called with the reason when the service cannot be reached, and with null when it can be reached again
 */
export async function* followPending(
  service: Assent,
  query: PendingQuery,
  { signal, onStatus }: { signal: AbortSignal; onStatus(fault: string | null): void },
): AsyncGenerator<PendingChanges, void, undefined> {
  const wake = createWake();
  void followEvents(service, signal, wake.now);
  let knownActions = new Map<string, ActionRecord>();
  let fault: string | null = null;
  for (let isFirst = true; !signal.aborted;) {
    try {
      const { actions, total } = await service.call<{ actions: ActionRecord[]; total: number | null }>(
        "GET",
        "/v1/approvals",
        undefined,
        { query: { ...query, limit: PAGE_SIZE }, signal },
      );
      const listed = new Map(actions.map((action) => [action.id, action]));
      const added = actions.filter(({ id }) => !knownActions.has(id));
      const removed: ActionRecord[] = [];
      for (const action of knownActions.values())
        if (!listed.has(action.id)) removed.push(await readAgain(service, action, signal));
      knownActions = listed;
      if (fault !== null) onStatus((fault = null));
      if (isFirst || added.length > 0 || removed.length > 0)
        yield { added, removed, more: total === null ? null : total - actions.length };
      isFirst = false;
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof ServiceUnavailable)) throw error;
      if (fault !== error.message) onStatus((fault = error.message));
    }
    await delay(READ_EVERY_MS, undefined, { signal }).catch(() => undefined);
    await wake.wait(fault === null ? POLL_MS : RETRY_MS, signal);
  }
}

async function readAgain(service: Assent, listed: ActionRecord, signal: AbortSignal): Promise<ActionRecord> {
  try {
    return await service.action(listed.id, { signal });
  } catch (error) {
    if (error instanceof AssentError && error.code === "ACTION_NOT_FOUND") return listed;
    throw error;
  }
}

/**
 * Wakes the reader at each event of an action. If the caller is not allowed to follow events, the list is only read at
 * intervals.
 */
async function followEvents(service: Assent, signal: AbortSignal, wake: () => void): Promise<void> {
  try {
    const { head } = await service.call<{ head: number }>("GET", "/v1/events/page", undefined, {
      query: { limit: 1 },
      signal,
    });
    // Wake the reader: the list may have been read before `head`, so it may lack changes of earlier events.
    wake();
    for await (const { action_id } of service.events({ signal, after: head })) if (action_id !== null) wake();
  } catch {
    // Ignore the error: the reader reports problems with the service, and continues to read at intervals.
  }
}

/** Creates a flag that one reader waits for. */
function createWake(): { now(): void; wait(ms: number, signal: AbortSignal): Promise<void> } {
  let isSet = false;
  let resolveWait = (): void => undefined;
  return {
    now() {
      isSet = true;
      resolveWait();
    },
    async wait(ms, signal) {
      if (!isSet && !signal.aborted) {
        const stop = new AbortController();
        await Promise.race([
          new Promise<void>((resolve) => (resolveWait = resolve)),
          delay(ms, undefined, { signal: AbortSignal.any([signal, stop.signal]) }).catch(() => undefined),
        ]);
        stop.abort();
      }
      isSet = false;
    },
  };
}
