/** Waiting for a verdict: woken by the ledger's tail, never by polling. */
import { type Credential, type Host, Refusal } from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import { isAgentOfAction, type WaitTracker } from "./wait-tracker.ts";

/** Of the request's context. `request.signal` aborts when the client goes away. */
export interface WaitingRequest {
  request: Pick<Request, "signal">;
  credential: Credential;
}

export interface Waiters {
  /**
   * Resolves with the action when it is no longer pending, or as it stands when `ms` have passed,
   * the client went away or the service stops.
   */
  waitWhilePending(row: ActionRow, ms: number, who: WaitingRequest): Promise<ActionRow | null>;
  /** Whether one more request with this credential may wait. */
  hasCapacity(who: Credential): boolean;
  /** Throws TOO_MANY_WAITS. */
  assertCapacity(who: Credential): void;
  /** How long a client that asks for so many seconds may wait. Milliseconds. */
  grantedMs(seconds: number): number;
  stop(): void;
}

/** Whoever waited is asked for the key again: it can have been revoked meanwhile. */
export async function refreshCredential(host: Pick<Host, "keys">, credential: Credential): Promise<Credential> {
  const current = await host.keys.refresh(credential);
  if (current !== null) return current;
  throw new Refusal(
    "INVALID_CREDENTIAL",
    `the key "${credential.key.name}" was revoked or has expired while the request waited; use a live one`,
    { headers: { "WWW-Authenticate": 'Bearer error="invalid_token"' } },
  );
}

export function createWaiters(host: Host, mostPerKey: number, asks: WaitTracker): Waiters {
  const waiting = new Map<string, Set<() => void>>();
  const perKey = new Map<string, number>();
  // One listener for all: Node keeps a bit of each signal that is joined with one that lives as long as the service.
  host.stopping.addEventListener("abort", () => {
    for (const wakes of waiting.values()) for (const wake of wakes) wake();
  });
  let unsubscribe: (() => void) | null = null;

  /** Only while somebody waits: this process reads what others write for it. */
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
      const left = (perKey.get(keyId) ?? 1) - 1;
      if (left === 0) perKey.delete(keyId);
      else perKey.set(keyId, left);
    };
  }

  const hasRoom = ({ key }: Credential): boolean => (perKey.get(key.id) ?? 0) < mostPerKey;

  return {
    grantedMs: (seconds) => Math.min(seconds, host.config.server.max_wait_seconds) * 1000,
    hasCapacity: hasRoom,
    assertCapacity(who) {
      if (hasRoom(who)) return;
      throw new Refusal(
        "TOO_MANY_WAITS",
        `${mostPerKey} requests with the key "${who.key.name}" wait for verdicts, as many as may; look without \`wait\``,
        { headers: { "Retry-After": "5" } },
      );
    },
    async waitWhilePending(pendingRow, ms, { request: { signal }, credential }) {
      const { id } = pendingRow;
      let wake: () => void = () => {};
      let pulse = new Promise<void>((resolve) => (wake = resolve));
      // Registered before the first read, so that a verdict between the two is not missed.
      const remove = add(id, credential.key.id, () => wake());
      listen();
      const stop = () => wake();
      signal.addEventListener("abort", stop);
      let over = false;
      let pending = true;
      const end = ms > 0 && isAgentOfAction(pendingRow, credential) ? asks.begin(pendingRow, host.clock() + ms) : null;
      const timer = setTimeout(() => {
        over = true;
        wake();
      }, ms);
      try {
        for (;;) {
          const row = await host.storage.action(id);
          const ended = over || signal.aborted || host.stopping.aborted;
          pending = row?.status === "pending_approval";
          if (row === null || !pending || ended) return row;
          await pulse;
          pulse = new Promise<void>((resolve) => (wake = resolve));
        }
      } finally {
        clearTimeout(timer);
        signal.removeEventListener("abort", stop);
        remove();
        end?.(pending && !over);
      }
    },
    stop: stopListening,
  };
}
