/** A storage in memory, for tests. Its simulated disk keeps committed data after `close`. */
import { StorageError, type Storage } from "../contract/storage.ts";
import { createLoggedStorage, type LoggedChange } from "../storage/log/logged.ts";
import { withFaults, type Faults } from "./faults.ts";

interface MemoryDisk {
  readonly kept: Map<string, LoggedChange>;
  /** Whether a storage has the disk open for writing. */
  locked: boolean;
}

export const memoryDisk = (): MemoryDisk => ({ kept: new Map(), locked: false });

/**
 * Creates a storage in memory, with fault injection. Storages with the same `disk` share their state.
 * @example
 * const storage = memoryStorage();
 * storage.faults.failNext("commit", "not-persisted");
 */
export function memoryStorage(disk: MemoryDisk = memoryDisk()): Storage & { faults: Faults } {
  const { kept } = disk;
  let isLockHolder = false;
  return withFaults(
    createLoggedStorage({
      name: "memory",
      async open({ readOnly }) {
        if (readOnly && kept.size === 0) throw new StorageError("unavailable", "there is no store yet");
        if (!readOnly && disk.locked) throw new StorageError("locked", "another storage has this memory open");
        if (!readOnly) disk.locked = isLockHolder = true;
        return [...kept.values()];
      },
      async append(changes) {
        for (const change of changes) kept.set(JSON.stringify([change.table, change.key]), change);
      },
      async close() {
        if (isLockHolder) disk.locked = isLockHolder = false;
      },
    }),
  );
}
