/** Retries work that the database rolled back because it conflicted with another transaction. */
import { StorageError } from "../../src/storage/index.ts";

const MAX_RETRIES = 8;
/** Maximum pause before the first retry. It doubles with each retry. Milliseconds. */
const FIRST_PAUSE_MS = 20;

/**
 * Runs a read or a whole transaction. Retries it up to eight times after conflicts.
 * @param work the work, which rejects with StorageError `conflict` if it can be retried
 */
export async function retryConflicts<T>(work: () => Promise<T>): Promise<T> {
  for (let conflicts = 1; ; conflicts++) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof StorageError) || error.kind !== "conflict" || conflicts > MAX_RETRIES) throw error;
      await new Promise((resolve) => setTimeout(resolve, Math.random() * FIRST_PAUSE_MS * 2 ** (conflicts - 1)));
    }
  }
}
