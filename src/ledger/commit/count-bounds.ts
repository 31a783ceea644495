/**
 * Tests whether a number of rows is below a limit, without counting them for each request. Each added row has a ledger
 * entry, so the number is at most the last count plus the number of entries since then, of all processes.
 */

interface BatchPosition {
  /** Size of the ledger before the batch. */
  base: number;
  /** Size of the ledger with the entries of the batch so far. */
  size: number;
}

export interface CountBounds {
  /**
   * Returns true if the number is below `limit`. Counts only if the upper bound is too high.
   * @param name identifies what is counted
   * @param count returns the number, or any number that is not below the limit
   */
  isBelow(name: string, limit: number, count: () => Promise<number>, batch: BatchPosition): Promise<boolean>;
}

/** Maximum number of stored bounds. */
const MAX_BOUNDS = 10_000;

export function createCountBounds(): CountBounds {
  /** Upper bound of each number of rows, at the given size of the ledger. */
  const bounds = new Map<string, { size: number; most: number }>();
  return {
    async isBelow(name, limit, count, { base, size }) {
      const bound = bounds.get(name);
      if (bound !== undefined && bound.size <= base && bound.most + size - bound.size < limit) return true;
      const counted = await count();
      if (counted >= limit) return false;
      if (bounds.size >= MAX_BOUNDS) bounds.clear();
      // The batch might be rolled back, which would restore the rows that it removed.
      bounds.set(name, { size: base, most: counted + size - base });
      return true;
    },
  };
}
