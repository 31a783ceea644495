/** Waiting for a verdict: woken by the ledger's tail, never by polling. */
import { Refusal } from "../../src/contract/errors.ts";
import type { Credential, Host } from "../../src/contract/host.ts";
import type { ActionRow } from "../../src/contract/storage.ts";

export interface Waiters {
  /**
   * Resolves with the action when it is no longer pending, or as it stands when `ms` have passed,
   * the client went away or the service stops.
   */
  verdict(id: string, ms: number, signal: AbortSignal): Promise<ActionRow | null>;
  /** How long a client that asks for so many seconds may wait. Milliseconds. */
  grant(seconds: number): number;
  stop(): void;
}

/** Whoever waited is asked for the key again: it can have been revoked meanwhile. */
export async function stillAllowed(host: Pick<Host, "keys">, credential: Credential): Promise<Credential> {
  const current = await host.keys.refresh(credential);
  if (current !== null) return current;
  throw new Refusal(
    "INVALID_CREDENTIAL",
    `the key "${credential.key.name}" was revoked or has expired while the request waited; use a live one`,
    { headers: { "WWW-Authenticate": 'Bearer error="invalid_token"' } },
  );
}

export function createWaiters(host: Host): Waiters {
  const waiting = new Map<string, Set<() => void>>();
  let unsubscribe: (() => void) | null = null;

  function listen(): void {
    unsubscribe ??= host.ledger.subscribe((entries) => {
      if (waiting.size === 0) return;
      for (const entry of entries) {
        if (entry.action_id === null) continue;
        for (const wake of waiting.get(entry.action_id) ?? []) wake();
      }
    });
  }

  function add(id: string, wake: () => void): () => void {
    const set = waiting.get(id) ?? new Set();
    waiting.set(id, set.add(wake));
    return () => {
      set.delete(wake);
      if (set.size === 0) waiting.delete(id);
    };
  }

  return {
    grant: (seconds) => Math.min(seconds, host.config.server.max_wait_seconds) * 1000,
    async verdict(id, ms, signal) {
      listen();
      const end = AbortSignal.any([signal, host.stopping]);
      let wake: () => void = () => {};
      let pulse = new Promise<void>((resolve) => (wake = resolve));
      // Registered before the first read, so that a verdict between the two is not missed.
      const remove = add(id, () => wake());
      const stop = () => wake();
      end.addEventListener("abort", stop);
      let over = false;
      const timer = setTimeout(() => {
        over = true;
        wake();
      }, ms);
      try {
        for (;;) {
          const row = await host.storage.action(id);
          if (row === null || row.status !== "pending_approval" || over || end.aborted) return row;
          await pulse;
          pulse = new Promise<void>((resolve) => (wake = resolve));
        }
      } finally {
        clearTimeout(timer);
        end.removeEventListener("abort", stop);
        remove();
      }
    },
    stop() {
      unsubscribe?.();
      unsubscribe = null;
    },
  };
}
