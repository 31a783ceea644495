/** Retries work that the database rolled back because it conflicted with another transaction. */
import { StorageError } from "../../contract/storage.ts";

const MOST = 8;
/** Longest first pause between attempts; doubles each time. Milliseconds. */
const PAUSE = 10;

/**
 * Runs a read, or a whole transaction, until it does not conflict; at most nine times.
 * @param work rejects with StorageError `conflict` if it may run again
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
