/** Lets requests wait while an action is pending. New ledger entries wake them; nothing polls. */
import { type CoreHost, hasOpenQuestion } from "../../src/core.ts";
import { type Credential, Refusal } from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import { isAgentOfAction, type WaitTracker } from "./wait-tracker.ts";

/** The members of a request's context that a wait needs. `request.signal` aborts when the client disconnects. */
interface WaitingRequest {
  request: Pick<Request, "signal">;
  credential: Credential;
}

export interface ActionWaits {
  /**
   * Waits while the action is pending, for at most `ms` milliseconds. Ends early if the client disconnects or the
   * service stops and, for the action's agent, if an approver's question is unanswered. Resolves with the action; null
   * if the action no longer exists.
   */
  waitWhilePending(row: ActionRow, ms: number, caller: WaitingRequest): Promise<ActionRow | null>;
  /** Whether another request with this credential may wait. */
  hasCapacity(caller: Credential): boolean;
  /** Throws TOO_MANY_WAITS if no other request with this credential may wait. */
  assertCapacity(caller: Credential): void;
  /** Returns the wait in milliseconds that the service grants for the requested seconds. */
  grantedMs(seconds: number): number;
  stop(): void;
}

/** Authenticates the credential again after a wait. Throws INVALID_CREDENTIAL if it was revoked or has expired. */
export async function refreshCredential(host: Pick<CoreHost, "keys">, credential: Credential): Promise<Credential> {
  const current = await host.keys.refresh(credential);
  if (current !== null) return current;
  throw new Refusal(
    "INVALID_CREDENTIAL",
    `the key "${credential.key.name}" was revoked or has expired while the request waited; use an active key`,
    { headers: { "WWW-Authenticate": 'Bearer error="invalid_token"' } },
  );
}

export function createActionWaits(host: CoreHost, maxPerKey: number, tracker: WaitTracker): ActionWaits {
  const waiting = new Map<string, Set<() => void>>();
  const perKey = new Map<string, number>();
  // Use one listener for all waits, because joining each request's signal with this long-lived signal leaks memory in
  // Node.
  host.stopping.addEventListener("abort", () => {
    for (const wakes of waiting.values()) for (const wake of wakes) wake();
  });
  let unsubscribe: (() => void) | null = null;

  /**
   * Subscribes only while a request waits, because a subscription makes this process read the entries of other
   * processes.
   */
  function listen(): void {
    unsubscribe ??= host.ledger.subscribe((entries) => {
      for (const entry of entries) {
        if (entry.action_id === null) continue;
        for (const wake of waiting.get(entry.action_id) ?? []) wake();
      }
    });
  }

  function stopListening(): void {
    unsubscribe?.();
    unsubscribe = null;
  }

  function add(id: string, keyId: string, wake: () => void): () => void {
    const set = waiting.get(id) ?? new Set();
    waiting.set(id, set.add(wake));
    perKey.set(keyId, (perKey.get(keyId) ?? 0) + 1);
    return () => {
      set.delete(wake);
      if (set.size === 0) waiting.delete(id);
      if (waiting.size === 0) stopListening();
      const remaining = (perKey.get(keyId) ?? 1) - 1;
      if (remaining === 0) perKey.delete(keyId);
      else perKey.set(keyId, remaining);
    };
  }

  const hasRoom = ({ key }: Credential): boolean => (perKey.get(key.id) ?? 0) < maxPerKey;

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
    async waitWhilePending(pendingRow, ms, { request: { signal }, credential }) {
      const { id } = pendingRow;
      let wake: () => void = () => {};
      let nextEntry = new Promise<void>((resolve) => (wake = resolve));
      // Register before the first read, so that no vote between the two is missed.
      const remove = add(id, credential.key.id, () => wake());
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
          const row = await host.storage.action(id);
          const ended = timedOut || signal.aborted || host.stopping.aborted;
          pending = row?.status === "pending_approval";
          if (row === null || !pending || ended || mustAnswer(row)) return row;
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
