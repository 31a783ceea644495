/** Lets requests wait while an action is pending. New ledger entries wake them; nothing polls. */
import { callerId, type CoreHost, createSharedRead, decodeQuestions } from "../../src/core.ts";
import { type Credential, Refusal } from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import { isAgentOfAction, type WaitTracker } from "./wait-tracker.ts";

/** The members of a request's context that a wait needs. */
interface WaitingRequest {
  signal: AbortSignal;
  credential: Credential;
}

export interface ActionWaits {
  /**
   * Waits while the action is pending, for at most `ms` milliseconds. Ends early if the request's signal aborts and, for
   * the action's agent, if an approver's question is unanswered. Resolves with the action; null if the action no longer
   * exists.
   */
  waitWhilePending(row: ActionRow, ms: number, caller: WaitingRequest): Promise<ActionRow | null>;
  /** Returns true if another request with this credential may wait. */
  hasCapacity(caller: Credential): boolean;
  /** Throws TOO_MANY_WAITS if no other request with this credential may wait. */
  assertCapacity(caller: Credential): void;
  /** Returns the wait in milliseconds that the service grants for the requested seconds. */
  grantedMs(seconds: number): number;
  stop(): void;
}

/** An action for which requests wait. */
interface WaitedAction {
  wakes: Set<() => void>;
  /** Reads the action, once for all requests that an entry wakes. */
  read(): Promise<ActionRow | null>;
}

export function createActionWaits(host: CoreHost, maxPerKey: number, tracker: WaitTracker): ActionWaits {
  const waiting = new Map<string, WaitedAction>();
  const perCaller = new Map<string, number>();
  let unsubscribe: (() => void) | null = null;

  /**
   * Subscribes only while a request waits, because a subscription makes this process read the entries of other
   * processes.
   */
  function listen(): void {
    unsubscribe ??= host.ledger.subscribe((entries) => {
      for (const id of new Set(entries.map(({ action_id }) => action_id)))
        if (id !== null) waiting.get(id)?.wakes.forEach((wake) => wake());
    });
  }

  function stopListening(): void {
    unsubscribe?.();
    unsubscribe = null;
  }

  function add(id: string, caller: string, wake: () => void): { read: WaitedAction["read"]; remove(): void } {
    const action = waiting.get(id) ?? { wakes: new Set(), read: createSharedRead(() => host.storage.action(id)) };
    waiting.set(id, action);
    action.wakes.add(wake);
    perCaller.set(caller, (perCaller.get(caller) ?? 0) + 1);
    return {
      read: action.read,
      remove() {
        action.wakes.delete(wake);
        if (action.wakes.size === 0) waiting.delete(id);
        if (waiting.size === 0) stopListening();
        const remaining = (perCaller.get(caller) ?? 1) - 1;
        if (remaining === 0) perCaller.delete(caller);
        else perCaller.set(caller, remaining);
      },
    };
  }

  const hasRoom = (caller: Credential): boolean => (perCaller.get(callerId(caller)) ?? 0) < maxPerKey;

  return {
    grantedMs: (seconds) => Math.min(seconds, host.config.server.max_wait_seconds) * 1000,
    hasCapacity: hasRoom,
    assertCapacity(caller) {
      if (hasRoom(caller)) return;
      throw new Refusal(
        "TOO_MANY_WAITS",
        `${maxPerKey} requests with the key "${caller.key.name}" already wait, which is the limit; send the request without \`wait\``,
        { headers: { "Retry-After": "5" } },
      );
    },
    async waitWhilePending(pendingRow, ms, { signal, credential }) {
      let wake: () => void = () => {};
      let nextEntry = new Promise<void>((resolve) => (wake = resolve));
      // Register before the first read, so that no vote between the two is missed.
      const { read, remove } = add(pendingRow.id, callerId(credential), () => wake());
      listen();
      const stop = () => wake();
      signal.addEventListener("abort", stop);
      let timedOut = false;
      let pending = true;
      const isAgent = isAgentOfAction(pendingRow, credential);
      const mustAnswer = (row: ActionRow): boolean => isAgent && hasOpenQuestion(row.questions);
      const end = ms > 0 && isAgent ? tracker.begin(pendingRow, host.clock() + ms) : null;
      const timer = setTimeout(() => {
        timedOut = true;
        wake();
      }, ms);
      try {
        for (;;) {
          const row = await read();
          const ended = timedOut || signal.aborted;
          pending = row?.status === "pending_approval";
          if (row === null || !pending || ended || mustAnswer(row)) {
            // One entry can wake many requests. Render their replies in turns, so that they do not delay decisions.
            await host.waitForReadSlot();
            return row;
          }
          await nextEntry;
          nextEntry = new Promise<void>((resolve) => (wake = resolve));
        }
      } finally {
        clearTimeout(timer);
        signal.removeEventListener("abort", stop);
        remove();
        end?.(pending && !timedOut);
      }
    },
    stop: stopListening,
  };
}

/** Returns true if the agent has a question to answer. */
function hasOpenQuestion(text: string | null): boolean {
  return text !== null && decodeQuestions(text).some(({ answer }) => answer === null);
}
