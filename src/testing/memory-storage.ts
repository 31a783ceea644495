/** The storage contract without a database, for tests. The object is the disk: what was committed survives `close` and `open`, and nothing else does. */
import { StorageError, type Storage } from "../contract/storage.ts";
import { createLoggedStorage, type LoggedChange } from "../storage/logged.ts";
import { withFaults, type Faults } from "./faults.ts";

export function memoryStorage(): Storage & { faults: Faults } {
  const kept = new Map<string, LoggedChange>();
  return withFaults(
    createLoggedStorage({
      name: "memory",
      async open({ readOnly }) {
        if (readOnly && kept.size === 0) throw new StorageError("unavailable", "there is no store yet");
        return [...kept.values()];
      },
      async append(changes) {
        for (const change of changes) kept.set(JSON.stringify([change.table, change.key]), change);
      },
      async close() {},
    }),
  );
}
