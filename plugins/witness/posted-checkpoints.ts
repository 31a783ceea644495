/**
 * Posts the newest signed checkpoint to configured URLs at intervals, without delaying decisions. A receiver that
 * stores the notes can later prove which history was signed. The request itself is not signed, because the note is. If
 * a receiver is unavailable, a later checkpoint covers the checkpoints that it missed.
 */
import { type CoreHost, createRepeatingTask, type LeaderLease } from "../../src/core.ts";

/** Request timeout. Milliseconds. */
const REQUEST_TIMEOUT_MS = 10_000;

interface PostedCheckpointsOptions {
  urls: readonly string[];
  ledger: Pick<CoreHost["ledger"], "checkpoint" | "origin">;
  lease: LeaderLease;
  everyMs: number;
  log: Pick<CoreHost["log"], "warn">;
}

interface PostedCheckpoints {
  start(): void;
  stop(): Promise<void>;
  /** Posts the newest checkpoint to each URL that has not accepted it yet. Never rejects. */
  round(): Promise<void>;
}

export function createPostedCheckpoints({
  urls,
  ledger,
  lease,
  everyMs,
  log,
}: PostedCheckpointsOptions): PostedCheckpoints {
  /**
   * Size of the checkpoint that each URL last accepted, as far as this process knows. After a restart, a URL can get
   * the same checkpoint again.
   */
  const acceptedSizes = new Map<string, number>();
  const complaints = new Map<string, string>();
  const controller = new AbortController();

  async function post(url: string, body: string): Promise<void> {
    const response = await fetch(url, {
      method: "POST",
      body,
      headers: { "Content-Type": "application/json" },
      // A redirect could lead to a host that the operator has not configured.
      redirect: "error",
      signal: AbortSignal.any([AbortSignal.timeout(REQUEST_TIMEOUT_MS), controller.signal]),
    });
    await response.body?.cancel();
    if (!response.ok) throw new Error(`it responded with status ${response.status}`);
  }

  async function publish(): Promise<void> {
    if (!(await lease.isLeader())) return;
    const { size, note } = await ledger.checkpoint();
    const body = JSON.stringify({ type: "checkpoint", origin: ledger.origin, size, note });
    await Promise.all(
      urls.map(async (url) => {
        if (size === 0 || (acceptedSizes.get(url) ?? 0) >= size) return;
        try {
          await post(url, body);
          acceptedSizes.set(url, size);
          complaints.delete(url);
        } catch (error) {
          const reason = error instanceof Error ? error.message : String(error);
          // Log each reason once. Omit the path of the URL, which can contain a secret.
          if (!controller.signal.aborted && complaints.get(url) !== reason)
            log.warn("a checkpoint was not accepted; the next one will cover it", {
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
      controller.abort();
      await rounds.stop();
      await lease.release();
    },
  };
}
