/** Work that the database gives up for another transaction's sake: nothing of it was kept, and it may run again. */
import { StorageError } from "../../contract/storage.ts";

const MOST = 8;
/** Milliseconds; it doubles each time. */
const PAUSE = 10;

/**
 * Runs what reads, or writes in a transaction of its own, until no other is in its way; at most nine times.
 * @param work rejects with StorageError `conflict` where it may run again
 */
export async function despiteConflicts<T>(work: () => Promise<T>): Promise<T> {
  for (let conflicts = 1; ; conflicts++) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof StorageError) || error.kind !== "conflict" || conflicts > MOST) throw error;
      await new Promise((resolve) => setTimeout(resolve, Math.random() * PAUSE * 2 ** conflicts));
    }
  }
}
