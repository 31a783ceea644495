/** When keys were last used, off the way of a decision: noted in memory, written now and then in one transaction. */
import type { Logger } from "../contract/host.ts";
import type { Storage } from "../contract/storage.ts";

/** A use within so long of the one that was noted is not noted again. Milliseconds. */
const COARSE = 60_000;
const WRITE_AFTER = 30_000;

export interface KeyUse {
  note(keyId: string, now: number): void;
  /** Writes what was noted. Never rejects: what cannot be written is tried again with the next note. */
  flush(): Promise<void>;
  stop(): Promise<void>;
}

export function createKeyUse(storage: Pick<Storage, "write">, log: Logger): KeyUse {
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
      log.warn("the last use of API keys could not be written; it is kept for the next time", { error: String(error) });
    }
  }

  return {
    note(keyId, now) {
      // Also where the clock was set back: what was noted lies ahead of it then.
      if (Math.abs(now - (noted.get(keyId) ?? -Infinity)) < COARSE) return;
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
