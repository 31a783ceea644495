/**
 * Tells whether a key has fewer pending actions than a limit, without counting them for each request. Each new pending
 * action needs a ledger entry of any process. So a count remains an upper bound if the entries since then are added.
 */
import type { StorageTransaction } from "../../contract/storage.ts";

export interface PendingBounds {
  /**
   * Returns true if the key has fewer pending actions than `limit`. Counts them only if the upper bound is too high.
   * @param base size of the ledger before the batch
   * @param size size of the ledger with the entries of the batch so far
   */
  isBelow(
    tx: Pick<StorageTransaction, "pendingCount">,
    keyId: string,
    limit: number,
    batch: { now: number; base: number; size: number },
  ): Promise<boolean>;
}

/** Maximum number of keys with a stored bound. */
const MAX_KEYS = 10_000;

export function createPendingBounds(): PendingBounds {
  /** For each key, the maximum number of its pending actions when the ledger had this size. */
  const bounds = new Map<string, { size: number; most: number }>();
  return {
    async isBelow(tx, keyId, limit, { now, base, size }) {
      const known = bounds.get(keyId);
      if (known !== undefined && known.size <= base && known.most + size - known.size < limit) return true;
      const count = await tx.pendingCount({ key_id: keyId }, now);
      if (bounds.size >= MAX_KEYS) bounds.clear();
      // The batch may be rolled back. Then the actions that it ended are pending again.
      bounds.set(keyId, { size: base, most: count + size - base });
      return count < limit;
    },
  };
}
