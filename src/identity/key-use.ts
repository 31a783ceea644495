/**
 * Records when each key was last used, without delaying decisions: collects times in memory and writes them together at
 * intervals.
 */
import type { Logger } from "../contract/host.ts";
import type { Storage } from "../contract/storage.ts";

/** A later use is recorded only if it differs from the recorded time by at least this number of milliseconds. */
const PRECISION_MS = 60_000;
const WRITE_AFTER = 30_000;

interface KeyUse {
  note(keyId: string, now: number): void;
  /** Writes the collected times. Never rejects: the next call retries a failed write. */
  flush(): Promise<void>;
  stop(): Promise<void>;
}

export function createKeyUseRecorder(storage: Pick<Storage, "write">, log: Logger): KeyUse {
  const noted = new Map<string, number>();
  let unwritten = new Map<string, number>();
  let timer: ReturnType<typeof setTimeout> | null = null;

  async function flush(): Promise<void> {
    timer = null;
    const uses = unwritten;
    unwritten = new Map();
    if (uses.size === 0) return;
    try {
      await storage.write(async (tx) => {
        for (const [id, at] of uses) await tx.touchKey(id, at);
      });
    } catch (error) {
      for (const [id, at] of uses) if (!unwritten.has(id)) unwritten.set(id, at);
      log.warn("the last use of API keys could not be written; retrying later", { error: String(error) });
    }
  }

  return {
    note(keyId, now) {
      // Use the absolute difference, because after the clock was set back the recorded time is in the future.
      if (Math.abs(now - (noted.get(keyId) ?? -Infinity)) < PRECISION_MS) return;
      noted.set(keyId, now);
      unwritten.set(keyId, now);
      if (timer !== null) return;
      timer = setTimeout(() => void flush(), WRITE_AFTER);
      timer.unref?.();
    },
    flush,
    async stop() {
      if (timer !== null) clearTimeout(timer);
      await flush();
    },
  };
}
