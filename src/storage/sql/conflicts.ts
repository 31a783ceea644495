/** Retries work that the database rolled back because it conflicted with another transaction. */
import { StorageError } from "../../contract/storage.ts";

const MAX_RETRIES = 8;
/** Longest first pause between attempts; doubles each time. Milliseconds. */
const FIRST_PAUSE_MS = 10;

/**
 * Runs a read, or a whole transaction, until it does not conflict; at most nine times.
 * @param work rejects with StorageError `conflict` if it may run again
 */
export async function retryConflicts<T>(work: () => Promise<T>): Promise<T> {
  for (let conflicts = 1; ; conflicts++) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof StorageError) || error.kind !== "conflict" || conflicts > MAX_RETRIES) throw error;
      await new Promise((resolve) => setTimeout(resolve, Math.random() * FIRST_PAUSE_MS * 2 ** conflicts));
    }
  }
}
