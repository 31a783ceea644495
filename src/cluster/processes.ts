/** Lists the processes that share the store, from the rows that each ledger writes (src/ledger/commit/history-agreement.ts). */
import type { Processes } from "../contract/core-host.ts";
import type { Storage } from "../contract/storage.ts";

/**
 * A process whose row is older than this counts as ended. Also the duration of leases (leader-lease.ts). Milliseconds.
 */
const TERM_MS = 15_000;

export function createProcessList(storage: Storage, instance: string): Processes {
  return {
    async list() {
      // Without these methods, no other process can have the store open.
      if (storage.processes === undefined) return { count: 1, duties: [] };
      const [{ processes }, held] = await Promise.all([storage.processes.list(), storage.leases(TERM_MS)]);
      const alive = processes.filter((row) => row.age_ms <= TERM_MS);
      return {
        count: Math.max(alive.length, 1),
        duties: held.map(({ name, holder }) => ({ name, here: holder === instance })),
      };
    },
  };
}
