/** The processes that share the store, as they tell each other: each holds a lease in its own name for as long as it lives. */
import type { Logger, Processes } from "../contract/host.ts";
import type { Storage } from "../contract/storage.ts";

const PROCESS_PREFIX = "process/";
/** Milliseconds. A process that is gone is still counted for this long. */
const PROCESS_TERM = 30_000;
const EVERY = 10_000;

export interface ProcessList extends Processes {
  start(): Promise<void>;
  stop(): Promise<void>;
}

export function createProcesses(storage: Storage, instance: string, log: Logger): ProcessList {
  let timer: ReturnType<typeof setInterval> | null = null;
  const name = `${PROCESS_PREFIX}${instance}`;

  async function tell(): Promise<void> {
    try {
      await storage.lease(name, instance, PROCESS_TERM);
    } catch (error) {
      log.debug("this process could not tell the others that it lives", { error: String(error) });
    }
  }

  return {
    async list() {
      // Nobody else has the store.
      if (storage.exclusive) return { count: 1, duties: [] };
      const held = await storage.leases(PROCESS_TERM);
      const alive = held.filter((lease) => lease.name.startsWith(PROCESS_PREFIX)).map(({ holder }) => holder);
      const duties = held
        .filter((lease) => !lease.name.startsWith(PROCESS_PREFIX))
        .map((lease) => ({ name: lease.name, here: lease.holder === instance }));
      return { count: Math.max(alive.length, 1), duties };
    },
    async start() {
      if (storage.exclusive) return;
      await tell();
      timer = setInterval(() => void tell(), EVERY);
      timer.unref?.();
    },
    async stop() {
      if (timer === null) return;
      clearInterval(timer);
      timer = null;
      await storage.release(name, instance).catch(() => undefined);
    },
  };
}
