/**
 * Posts the newest signed checkpoint to addresses of the operator's choice, now and then and never on the way of a
 * decision: whoever keeps what comes can show later which history was signed. The note proves itself by its signature, so
 * the request has no other. A place that is away misses sizes; the next checkpoint covers them.
 */
import { createRepeatingTask } from "../../cluster/repeating-task.ts";
import type { LeaderLease } from "../../contract/core-host.ts";
import type { Logger } from "../../contract/host.ts";
import type { Ledger } from "../../contract/ledger.ts";

/** Longest wait for one place. Milliseconds. */
const PATIENCE = 10_000;

export interface PostedCheckpointsOptions {
  urls: readonly string[];
  ledger: Pick<Ledger, "checkpoint" | "origin">;
  duty: LeaderLease;
  everyMs: number;
  log: Pick<Logger, "warn">;
}

export interface PostedCheckpoints {
  start(): void;
  stop(): Promise<void>;
  /** Posts what is newest wherever it has not been taken yet. Never rejects. */
  round(): Promise<void>;
}

export function createPostedCheckpoints({
  urls,
  ledger,
  duty,
  everyMs,
  log,
}: PostedCheckpointsOptions): PostedCheckpoints {
  /** Size that each place took last, as far as this process knows: after a restart it gets one twice. */
  const taken = new Map<string, number>();
  const complaints = new Map<string, string>();
  const over = new AbortController();

  async function post(url: string, body: string): Promise<void> {
    const response = await fetch(url, {
      method: "POST",
      body,
      headers: { "Content-Type": "application/json" },
      // A redirect would take the checkpoint to somebody whom the operator has not chosen.
      redirect: "error",
      signal: AbortSignal.any([AbortSignal.timeout(PATIENCE), over.signal]),
    });
    await response.body?.cancel();
    if (!response.ok) throw new Error(`it answered ${response.status}`);
  }

  async function publish(): Promise<void> {
    if (!(await duty.isLeader())) return;
    const { size, note } = await ledger.checkpoint();
    const body = JSON.stringify({ type: "checkpoint", origin: ledger.origin, size, note });
    await Promise.all(
      urls.map(async (url) => {
        if (size === 0 || (taken.get(url) ?? 0) >= size) return;
        try {
          await post(url, body);
          taken.set(url, size);
          complaints.delete(url);
        } catch (error) {
          const reason = error instanceof Error ? error.message : String(error);
          // Once for each reason. The address may hold a secret behind its host.
          if (!over.signal.aborted && complaints.get(url) !== reason)
            log.warn("a checkpoint was not taken; the next one will cover it", {
              host: new URL(url).host,
              error: reason,
            });
          complaints.set(url, reason);
        }
      }),
    );
  }

  const rounds = createRepeatingTask({
    task: publish,
    everyMs,
    onFailure: (error) => log.warn("no checkpoint could be posted", { error: String(error) }),
  });

  return {
    round: () => rounds.run(),
    start: () => rounds.start(),
    async stop() {
      over.abort();
      await rounds.stop();
      await duty.release();
    },
  };
}
