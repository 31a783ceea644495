/**
 * Tells whether a key has fewer pending actions than a limit, without counting them for each request. Each action that
 * becomes pending has a ledger entry. So a key has at most the pending actions of its last count, plus one for each entry
 * since then, of any process.
 */
import type { StorageTransaction } from "../../contract/storage.ts";

interface BatchPosition {
  now: number;
  /** Size of the ledger before the batch. */
  base: number;
  /** Size of the ledger with the entries of the batch so far. */
  size: number;
}

export interface PendingBounds {
  /** Returns true if the key has fewer pending actions than `limit`. Counts them only if the upper bound is too high. */
  isBelow(
    tx: Pick<StorageTransaction, "pendingCount">,
    keyId: string,
    limit: number,
    batch: BatchPosition,
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
