/** Lets a limited number of reads run at a time. Those that wait take turns by policy, so that none waits for all reads of another. */

export interface FairSlots {
  /** Waits for a slot. Resolves to a function that releases it. Rejects with the signal's reason. */
  acquire(policy: string, over: AbortSignal): Promise<() => void>;
}

export function createFairSlots(slots: number): FairSlots {
  let free = slots;
  /** Number of slots that each policy has. */
  const held = new Map<string, number>();
  /** Functions that start the waiting reads of each policy, oldest first. */
  const waiting = new Map<string, Set<() => void>>();

  /** Starts the oldest read of the policy with the fewest slots. */
  function startNext(): void {
    let next: string | null = null;
    for (const policy of waiting.keys())
      if (next === null || (held.get(policy) ?? 0) < (held.get(next) ?? 0)) next = policy;
    if (next === null) return;
    const reads = waiting.get(next) ?? new Set();
    // Policies with equally many slots take turns.
    waiting.delete(next);
    waiting.set(next, reads);
    const [start] = reads;
    start?.();
  }

  function leave(policy: string, start: () => void): void {
    const waitingReads = waiting.get(policy);
    waitingReads?.delete(start);
    if (waitingReads?.size === 0) waiting.delete(policy);
  }

  function add(policy: string, change: number): void {
    free -= change;
    const count = (held.get(policy) ?? 0) + change;
    if (count > 0) held.set(policy, count);
    else held.delete(policy);
  }

  function take(policy: string): () => void {
    add(policy, 1);
    return () => {
      add(policy, -1);
      startNext();
    };
  }

  return {
    async acquire(policy, over) {
      if (free > 0) return take(policy);
      return new Promise((resolve, reject) => {
        const start = (): void => {
          leave(policy, start);
          over.removeEventListener("abort", giveUp);
          resolve(take(policy));
        };
        // A read that gives up leaves the queue, or it would be given a slot later.
        const giveUp = (): void => {
          leave(policy, start);
          reject(over.reason as Error);
        };
        over.addEventListener("abort", giveUp, { once: true });
        waiting.set(policy, (waiting.get(policy) ?? new Set()).add(start));
      });
    },
  };
}
